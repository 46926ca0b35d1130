//! Bundles, and which of their evidence holds.

use countersign_core::{
    proof::{
        bundle::Bundle,
        verify::{Evidence, VerifyError, verify},
    },
    values::digest::Sha512,
};

use super::{
    history::check_chain,
    promises::{assert_path, assert_shown, check_document},
};

pub fn check(data: &[u8]) {
    let Some(Bundle { evidence, .. }) = check_document(data, Bundle::parse, Bundle::write) else { return };
    assert_path(&evidence.path);
    check_chain(&evidence.history);
    match verify(&evidence) {
        Ok(artifact) => {
            assert_eq!(artifact.path, evidence.path);
            assert_eq!(artifact.index_digest, Sha512::of(evidence.index.as_bytes()));
            assert_eq!(artifact.governing().digest, evidence.governed_by);
            assert!(artifact.groups().iter().all(|group| group.signed >= group.threshold));
            check_necessary(&evidence);
        }
        Err(VerifyError::Revoked(revoked)) => {
            assert!(!revoked.revocation.revoked_by.is_empty());
            let unrevoked = Evidence { revocation: None, ..evidence };
            assert!(verify(&unrevoked).is_ok(), "only what holds can be revoked");
            check_necessary(&unrevoked);
        }
        Err(error) => assert_shown(&error),
    }
}

/// The proof fails if any one part is missing.
fn check_necessary(evidence: &Evidence) {
    let refused = |change: &dyn Fn(&mut Evidence)| {
        let mut changed = evidence.clone();
        change(&mut changed);
        assert!(verify(&changed).is_err());
    };
    refused(&|evidence| evidence.index.push(' '));
    refused(&|evidence| evidence.signatures = Default::default());
    refused(&|evidence| evidence.history = Default::default());
    refused(&|evidence| evidence.governed_by = Sha512::of(b""));
    refused(&|evidence| evidence.path = evidence.path.parent().expect("an index lies in a directory"));
}
