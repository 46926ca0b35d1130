//! Nonces, which make every request unique.

use uuid::{Uuid, Variant};

/// A nonce by its 16 bytes, whatever its letter case was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce(pub [u8; 16]);

/// Parses only the hyphenated form: other spellings of the same bytes would be other signed strings.
pub(crate) fn parse_nonce(text: &str) -> Option<Nonce> {
    const HYPHENATED_LENGTH: usize = 36;
    let uuid = Uuid::try_parse(text).ok().filter(|_| text.len() == HYPHENATED_LENGTH)?;
    let is_random = uuid.get_version_num() == 4 && uuid.get_variant() == Variant::RFC4122;
    is_random.then(|| Nonce(uuid.into_bytes()))
}
