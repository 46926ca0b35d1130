//! Bytes that must not be seen: passphrases, and the text of private keys.

use std::{fmt, fs::File, io::Read as _, path::Path};

use zeroize::{Zeroize as _, Zeroizing};

use crate::{error::CliError, paths::shown_path};

/// A secret that is overwritten when it is dropped. Its `Debug` shows nothing, unlike that of [`Zeroizing`].
pub(crate) struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A key or a passphrase is short; a longer file is something else.
    pub(super) fn read(path: &Path, limit: usize) -> Result<Self, CliError> {
        let mut content = Self::new(Vec::with_capacity(limit + 64));
        let read = File::open(path).and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut content.0));
        match read {
            Err(error) => Err(CliError::file("read", path, error)),
            Ok(length) if length > limit => Err(CliError::other(
                format!(
                    "{} is too long for a key or a passphrase: more than {limit} bytes",
                    shown_path(path)
                ),
                "check the path",
            )),
            Ok(_) => Ok(content),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds a byte, only within the room that it was made with, or a copy would be left behind.
    pub(super) fn push(&mut self, byte: u8) {
        debug_assert!(self.0.len() < self.0.capacity());
        self.0.push(byte);
    }

    /// A character of UTF-8, of however many bytes.
    pub(super) fn remove_last_char(&mut self) {
        let is_continuation = |byte: &u8| *byte & 0xc0 == 0x80;
        let end = self.0.iter().rposition(|byte| !is_continuation(byte)).unwrap_or(0);
        self.0[end..].zeroize();
        self.0.truncate(end);
    }

    pub(super) fn clear(&mut self) {
        self.0.zeroize();
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
