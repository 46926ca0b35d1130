//! What a verified release says of signers that came after its own.

use countersign_core::proof::verify::verify;
use countersign_testing::evidence::{evidence, good, release_index, rotated};
use countersign_testing::{INDEX, PROJECT, key};

#[test]
fn a_release_names_the_signers_that_replaced_its_own() {
    let (mut shown, past) = (good(), rotated(PROJECT));
    assert!(verify(&shown).unwrap().replaced_by().is_none());
    shown.history = past.history.clone();
    let artifact = verify(&shown).unwrap();
    assert_eq!(artifact.governing().digest, past.digest(0));
    assert_eq!(artifact.replaced_by().map(|link| link.digest), Some(past.digest(1)));
    let newest = evidence(&past, INDEX, &release_index("v1"), &[&key(5), &key(6)]);
    assert!(verify(&newest).unwrap().replaced_by().is_none());
}
