//! SHA-256 and SHA-512 digests and their spellings.

use std::fmt;

use serde::{Serialize, Serializer};
use sha2::Digest as _;

/// The prefix of a SHA-512 digest inside our documents.
const SHA512_PREFIX: &str = "sha512:";

/// A digest of `N` bytes; shown as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HexDigest<const N: usize>([u8; N]);

pub type Sha256 = HexDigest<32>;
pub type Sha512 = HexDigest<64>;

impl Sha256 {
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl Sha512 {
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha512::digest(bytes).into())
    }

    /// Writes `sha512:<hex>`, the spelling inside our documents.
    pub fn to_prefixed(self) -> String {
        format!("{SHA512_PREFIX}{self}")
    }

    pub fn parse_prefixed(text: &str) -> Option<Self> {
        text.strip_prefix(SHA512_PREFIX).and_then(Self::parse)
    }

    /// The first 64 hexadecimal digits: the name of a veto's directory (D136). No one finds two files with the same ones,
    /// and they leave room for the longest project.
    pub fn half(self) -> String {
        self.to_string()[..64].to_owned()
    }

    /// The first 16 hexadecimal digits: the name of a superseded proposal's directory (D15).
    pub fn short(self) -> String {
        self.to_string()[..16].to_owned()
    }
}

impl<const N: usize> HexDigest<N> {
    /// Parses lower-case hexadecimal of exactly the right length.
    pub fn parse(text: &str) -> Option<Self> {
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return None;
        }
        Self::parse_any_case(text)
    }

    /// Parses hexadecimal in any case; checksums files are also written in capitals.
    pub fn parse_any_case(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 2 * N {
            return None;
        }
        let mut bytes = [0; N];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = hex_value(pair[0])? << 4 | hex_value(pair[1])?;
        }
        Some(Self(bytes))
    }

    pub fn from_bytes(bytes: [u8; N]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

impl<const N: usize> fmt::Display for HexDigest<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One `write!` a byte took 2 µs for SHA-512, a third of the time to make a record of the log.
        let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
        let digits = self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        f.write_str(&digits.collect::<String>())
    }
}

/// Writes the digest as inside our documents, with its prefix.
impl Serialize for Sha512 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_prefixed())
    }
}

impl<const N: usize> fmt::Debug for HexDigest<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HexDigest({self})")
    }
}
