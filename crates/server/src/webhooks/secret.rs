//! The secret that the server shares with a receiver. No text ever shows it.

use std::fmt;

use ring::hmac;
use thiserror::Error;

/// A shorter secret could be guessed by trying.
pub const MIN_SECRET_BYTES: usize = 16;

#[derive(Clone)]
pub struct Secret(hmac::Key);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the secret is shorter than {MIN_SECRET_BYTES} bytes: make one with `openssl rand -hex 32`")]
pub struct ShortSecret;

impl Secret {
    pub fn new(bytes: &[u8]) -> Result<Self, ShortSecret> {
        if bytes.len() < MIN_SECRET_BYTES {
            return Err(ShortSecret);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// `sha256=` and HMAC-SHA-256 of these bytes, in hexadecimal digits.
    pub fn sign(&self, body: &[u8]) -> String {
        use fmt::Write as _;
        let mut text = String::from("sha256=");
        for byte in hmac::sign(&self.0, body).as_ref() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
