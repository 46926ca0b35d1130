//! Objections (D123, D125), the file that keeps them, and the registrant of a release (D121).

use countersign_core::{
    documents::{
        objections::{EarlierObjections, ObjectionsFile},
        registrant::Registrant,
        statement::{Objection, Revocation},
    },
    values::digest::Sha512,
};

use super::promises::check_document;

pub fn check(data: &[u8]) {
    if let Some(objection) = check_document(data, Objection::parse, Objection::write) {
        assert!(objection.text.is_none_or(|text| (1..=1_000).contains(&text.chars().count())));
        assert!(data.len() <= 8 * 1024);
        // No signature on one is a signature on the other (D34).
        assert!(Revocation::parse(data).is_err());
    }
    if let Some(file) = check_document(data, ObjectionsFile::parse, ObjectionsFile::write) {
        assert!((1..=100).contains(&file.entries.len()));
        let subject = file.entries.values().next().map(|entry| entry.document.subject_digest);
        let kept = file.keep_verifying(&subject.unwrap_or(Sha512::of(b"")));
        assert!(kept.standing().len() <= file.standing().len());
        assert!(file.standing().windows(2).all(|pair| pair[0].timestamp <= pair[1].timestamp));
    }
    if let Some(file) = check_document(data, EarlierObjections::parse, EarlierObjections::write) {
        assert!((1..=100).contains(&file.entries.len()));
        assert!(file.keep_verifying().entries.len() <= file.entries.len());
        assert!(file.said().count() <= file.entries.len());
    }
    check_document(data, Registrant::parse, Registrant::write);
}
