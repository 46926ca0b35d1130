//! The bytes that a key signs for other programs.

use crate::values::key::{PublicKey, SecretKey, Signature};

/// The bytes that a key signs for one of these formats. Only the formats in this folder make them, so no other bytes reach a key this
/// way (D34).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatMessage(pub(super) Vec<u8>);

impl FormatMessage {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn sign_with(&self, key: &SecretKey) -> Signature {
        key.sign_text(&self.0)
    }

    pub fn is_signed_by(&self, key: &PublicKey, signature: &Signature) -> bool {
        key.verify_text(&self.0, signature).is_ok()
    }
}
