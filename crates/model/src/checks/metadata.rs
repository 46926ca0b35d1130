//! The metadata of a signers file (D10).

use countersign_core::documents::metadata::Metadata;

use super::promises::{assert_path, check_document};

pub fn check(data: &[u8]) {
    if let Some(metadata) = check_document(data, Metadata::parse, Metadata::write) {
        assert_path(&metadata.project_id);
    }
}
