//! The veto, and the agreement that a rotation waits by (D131, D135).

use countersign_core::documents::{agreement::Agreement, veto::Veto};

use super::promises::{assert_path, check_document};

pub fn check(data: &[u8]) {
    if let Some(veto) = check_document(data, Veto::parse, Veto::write) {
        assert!((1..=1_000).contains(&veto.veto.chars().count()));
        assert!(data.len() <= 16 * 1024);
        assert_path(&veto.project_id);
    }
    check_document(data, Agreement::parse, Agreement::write);
}
