//! Keys of logs and witnesses, as C2SP writes them: `NAME+ID+KEY` (D84).

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::values::key::{KeyError, PublicKey, decode_padded_base64, encode_base64};
use crate::values::{bounds::KEY_NAME_BYTES, digest::Sha256, shown::is_unseen};

/// What a key signs: its type byte is part of its id, so one kind is never taken for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// A log's: it signs the text of its checkpoints.
    Log,
    /// A witness's: it signs checkpoints together with a time.
    Witness,
}

/// An Ed25519 key of a log or witness, with the name under which it signs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerifierKey {
    name: Arc<str>,
    kind: KeyKind,
    key: PublicKey,
    id: [u8; 4],
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VerifierKeyError {
    #[error("not a verifier key of the form NAME+ID+KEY")]
    Form,
    #[error(
        "the name of a log or witness has 1 to {KEY_NAME_BYTES} bytes, no `+`, no blank and no invisible character"
    )]
    Name,
    #[error("keys of type {0:02x} are not supported; only Ed25519 is, type 01 for logs and 04 for witnesses")]
    Type(u8),
    #[error("its key is unusable: {0}")]
    Key(#[from] KeyError),
    #[error("its id does not belong to its name and key; check that all of it was copied")]
    Id,
    #[error("this is the key of a {0}, and must be that of a {1}")]
    OtherKind(KeyKind, KeyKind),
}

impl KeyKind {
    fn type_byte(self) -> u8 {
        match self {
            Self::Log => 1,
            Self::Witness => 4,
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "log",
            Self::Witness => "witness",
        })
    }
}

impl VerifierKey {
    pub fn new(name: &str, kind: KeyKind, key: PublicKey) -> Result<Self, VerifierKeyError> {
        let is_shown = !name.chars().any(|c| is_unseen(c) || c.is_whitespace() || c == '+');
        if name.is_empty() || name.len() > KEY_NAME_BYTES || !is_shown {
            return Err(VerifierKeyError::Name);
        }
        let named = [name.as_bytes(), b"\n", &[kind.type_byte()], key.as_bytes()].concat();
        let [a, b, c, d, ..] = *Sha256::of(&named).as_bytes();
        Ok(Self { name: name.into(), kind, key, id: [a, b, c, d] })
    }

    pub fn parse(text: &str) -> Result<Self, VerifierKeyError> {
        // A name has no `+`, but base64 can.
        let (name, rest) = text.split_once('+').ok_or(VerifierKeyError::Form)?;
        let (id, encoded) = rest.split_once('+').ok_or(VerifierKeyError::Form)?;
        let decoded = decode_padded_base64(encoded).ok_or(VerifierKeyError::Form)?;
        let (type_byte, key) = decoded.split_first().ok_or(VerifierKeyError::Form)?;
        let kind = [KeyKind::Log, KeyKind::Witness].into_iter().find(|kind| kind.type_byte() == *type_byte);
        let kind = kind.ok_or(VerifierKeyError::Type(*type_byte))?;
        let key = <[u8; 32]>::try_from(key).map_err(|_| VerifierKeyError::Form)?;
        let parsed = Self::new(name, kind, PublicKey::from_bytes(key)?)?;
        if parsed.id_text() == id { Ok(parsed) } else { Err(VerifierKeyError::Id) }
    }

    /// Parses a key of one kind.
    pub fn parse_kind(text: &str, kind: KeyKind) -> Result<Self, VerifierKeyError> {
        let parsed = Self::parse(text)?;
        if parsed.kind == kind { Ok(parsed) } else { Err(VerifierKeyError::OtherKind(parsed.kind, kind)) }
    }

    pub fn parse_log(text: &str) -> Result<Self, VerifierKeyError> {
        Self::parse_kind(text, KeyKind::Log)
    }

    /// The name of the log or witness. A log's is the origin of its checkpoints.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// The id, short, and no more than a hint which key is meant: anyone can make a key with the same id.
    pub fn id(&self) -> [u8; 4] {
        self.id
    }

    fn id_text(&self) -> String {
        format!("{:08x}", u32::from_be_bytes(self.id))
    }

    /// Writes `NAME+ID`, which tells apart the keys of one name.
    pub fn short(&self) -> String {
        format!("{}+{}", self.name, self.id_text())
    }
}

impl Serialize for VerifierKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = [&[self.kind.type_byte()], self.key.as_bytes().as_slice()].concat();
        write!(f, "{}+{}", self.short(), encode_base64(&key))
    }
}

impl fmt::Debug for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifierKey({self})")
    }
}
