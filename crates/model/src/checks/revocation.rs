//! The revocation document (D20).

use countersign_core::documents::statement::Revocation;

use super::promises::check_document;

pub fn check(data: &[u8]) {
    if let Some(revocation) = check_document(data, Revocation::parse, Revocation::write) {
        assert!((1..=1_000).contains(&revocation.reason.chars().count()));
        assert!(data.len() <= 16 * 1024);
    }
}
