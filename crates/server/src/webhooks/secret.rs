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
    pub(super) fn sign(&self, body: &[u8]) -> String {
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    /// RFC 4231, test cases 1 and 6.
    #[test]
    fn a_signature_is_hmac_sha_256() {
        let secret = Secret::new(&[0x0b; 20]).unwrap();
        assert_eq!(
            secret.sign(b"Hi There"),
            "sha256=b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        let secret = Secret::new(&[0xaa; 131]).unwrap();
        assert_eq!(
            secret.sign(b"Test Using Larger Than Block-Size Key - Hash Key First"),
            "sha256=60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_secret_is_long_enough_and_is_not_shown() {
        assert!(Secret::new(&[b'a'; MIN_SECRET_BYTES - 1]).is_err());
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
