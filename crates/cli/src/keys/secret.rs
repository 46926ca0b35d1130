//! Bytes that must not be seen: passphrases, and the text of private keys.

use std::fmt;

use zeroize::Zeroizing;

/// Shows nothing of itself, which `Zeroizing` would, and is overwritten when it is dropped.
pub(crate) struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Only within the room that it was made with, or a copy would be left behind.
    pub(super) fn push(&mut self, byte: u8) {
        debug_assert!(self.0.len() < self.0.capacity());
        self.0.push(byte);
    }

    /// A character of UTF-8, of however many bytes.
    pub(super) fn remove_last_char(&mut self) {
        let is_continuation = |byte: &u8| *byte & 0xc0 == 0x80;
        let end = self.0.iter().rposition(|byte| !is_continuation(byte)).unwrap_or(0);
        self.0.truncate(end);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(…)")
    }
}
