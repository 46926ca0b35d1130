//! The signatures file (D9).

use countersign_core::documents::signatures::SignatureSet;

use super::promises::{check_document, to_value};

/// The content that the signatures in the seeds sign.
pub const CONTENT: &[u8] = b"content";

pub fn check(data: &[u8]) {
    let Some(set) = check_document(data, SignatureSet::parse, SignatureSet::write) else { return };
    let written = to_value(&set.write());
    let entries = written["entries"].as_object().expect("entries are an object");
    assert_eq!(entries.len(), set.signers().len(), "one entry a key");
    let verifying = set.verifying_signers(CONTENT);
    assert!(verifying.is_subset(&set.signers()));
    assert_eq!(set.verify(CONTENT).is_ok(), verifying == set.signers());
    for (key, collected) in set.entries.iter() {
        assert!(set.entries.contains_key(key));
        let mut again = set.clone();
        again.add(*key, *collected);
        assert_eq!(again, set, "the first signature of a key stays");
    }
}
