//! Keys of logs and witnesses, as C2SP writes them: `NAME+ID+KEY` (D84).

use std::{fmt, sync::Arc};

use ml_dsa::{EncodedVerifyingKey, MlDsa44, Signature, VerifyingKey};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::values::key::{KeyError, PublicKey, decode_padded_base64, encode_base64};
use crate::values::{bounds::KEY_NAME_BYTES, digest::Sha256, shown::is_unseen};

/// What a key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// A log's: it signs the text of its checkpoints.
    Log,
    /// A witness's: it signs checkpoints together with a time.
    Witness,
}

/// A key of a log or witness, with the name under which it signs. The name of a witness says who it is: it can have
/// several keys (D264).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerifierKey {
    name: Arc<str>,
    key: TypedKey,
    id: [u8; 4],
}

/// A key of a type. The type byte is part of the id, so one type is never taken for another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypedKey {
    /// An Ed25519 key that signs the text of checkpoints.
    Log(PublicKey),
    /// An Ed25519 key that signs the text of checkpoints together with a time.
    Witness(PublicKey),
    /// An ML-DSA-44 key that signs what a checkpoint says, with its own name and a time (D263).
    MlDsaWitness(MlDsaKey),
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VerifierKeyError {
    #[error("not a verifier key of the form NAME+ID+KEY")]
    Form,
    #[error(
        "the name of a log or witness has 1 to {KEY_NAME_BYTES} bytes, no `+`, no blank and no invisible character"
    )]
    Name,
    #[error(
        "keys of type {0:02x} are not supported; only Ed25519 is, type 01 for logs and 04 for witnesses, and ML-DSA-44 for \
         witnesses, type 06"
    )]
    Type(u8),
    #[error("its key is unusable: {0}")]
    Key(#[from] KeyError),
    #[error("its id does not belong to its name and key; check that all of it was copied")]
    Id,
    #[error("this is the key of a {0}, and must be that of a {1}")]
    OtherKind(KeyKind, KeyKind),
}

impl TypedKey {
    fn parse(type_byte: u8, bytes: &[u8]) -> Result<Self, VerifierKeyError> {
        let form = |_| VerifierKeyError::Form;
        let ed25519 = || Ok::<_, VerifierKeyError>(PublicKey::from_bytes(bytes.try_into().map_err(form)?)?);
        match type_byte {
            1 => ed25519().map(Self::Log),
            4 => ed25519().map(Self::Witness),
            6 => Ok(Self::MlDsaWitness(MlDsaKey::from_bytes(bytes.try_into().map_err(form)?))),
            other => Err(VerifierKeyError::Type(other)),
        }
    }

    fn kind(&self) -> KeyKind {
        match self {
            Self::Log(_) => KeyKind::Log,
            Self::Witness(_) | Self::MlDsaWitness(_) => KeyKind::Witness,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Log(key) | Self::Witness(key) => key.as_bytes(),
            Self::MlDsaWitness(key) => key.as_bytes(),
        }
    }

    /// The type byte, and the key.
    fn typed_bytes(&self) -> Vec<u8> {
        let type_byte = match self {
            Self::Log(_) => 1,
            Self::Witness(_) => 4,
            Self::MlDsaWitness(_) => 6,
        };
        [&[type_byte], self.bytes()].concat()
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
    /// An Ed25519 key under this name.
    pub fn new(name: &str, kind: KeyKind, key: PublicKey) -> Result<Self, VerifierKeyError> {
        let key = match kind {
            KeyKind::Log => TypedKey::Log(key),
            KeyKind::Witness => TypedKey::Witness(key),
        };
        Self::of(name, key)
    }

    pub fn of(name: &str, key: TypedKey) -> Result<Self, VerifierKeyError> {
        let is_shown = !name.chars().any(|c| is_unseen(c) || c.is_whitespace() || c == '+');
        if name.is_empty() || name.len() > KEY_NAME_BYTES || !is_shown {
            return Err(VerifierKeyError::Name);
        }
        let named = [name.as_bytes(), b"\n", &key.typed_bytes()].concat();
        let [a, b, c, d, ..] = *Sha256::of(&named).as_bytes();
        Ok(Self { name: name.into(), key, id: [a, b, c, d] })
    }

    pub fn parse(text: &str) -> Result<Self, VerifierKeyError> {
        // A name has no `+`, but base64 can.
        let (name, rest) = text.split_once('+').ok_or(VerifierKeyError::Form)?;
        let (id, encoded) = rest.split_once('+').ok_or(VerifierKeyError::Form)?;
        let decoded = decode_padded_base64(encoded).ok_or(VerifierKeyError::Form)?;
        let (type_byte, key) = decoded.split_first().ok_or(VerifierKeyError::Form)?;
        let parsed = Self::of(name, TypedKey::parse(*type_byte, key)?)?;
        if parsed.id_text() == id { Ok(parsed) } else { Err(VerifierKeyError::Id) }
    }

    /// Parses a key of one kind.
    pub fn parse_kind(text: &str, kind: KeyKind) -> Result<Self, VerifierKeyError> {
        let parsed = Self::parse(text)?;
        let found = parsed.kind();
        if found == kind { Ok(parsed) } else { Err(VerifierKeyError::OtherKind(found, kind)) }
    }

    pub fn parse_log(text: &str) -> Result<Self, VerifierKeyError> {
        Self::parse_kind(text, KeyKind::Log)
    }

    /// The name of the log or witness. A log's is the origin of its checkpoints.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kind(&self) -> KeyKind {
        self.key.kind()
    }

    pub fn typed(&self) -> &TypedKey {
        &self.key
    }

    /// The Ed25519 key, which could also sign something else; `None` for a key of another type.
    pub fn ed25519(&self) -> Option<PublicKey> {
        match self.key {
            TypedKey::Log(key) | TypedKey::Witness(key) => Some(key),
            TypedKey::MlDsaWitness(_) => None,
        }
    }

    /// The key alone, by which two verifier keys are of one secret, whatever their names and types.
    pub fn bytes(&self) -> &[u8] {
        self.key.bytes()
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
        write!(f, "{}+{}", self.short(), encode_base64(&self.key.typed_bytes()))
    }
}

impl fmt::Debug for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifierKey({self})")
    }
}

/// The length of an ML-DSA-44 public key, and of a signature.
pub const ML_DSA_KEY_BYTES: usize = 1_312;
pub const ML_DSA_SIGNATURE_BYTES: usize = 2_420;

/// An ML-DSA-44 public key (FIPS 204), with which witnesses cosign so that a quantum computer cannot forge it (D263). Each
/// text of this length is one. Here keys only verify; a witness signs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MlDsaKey(Arc<[u8; ML_DSA_KEY_BYTES]>);

impl MlDsaKey {
    pub fn from_bytes(bytes: [u8; ML_DSA_KEY_BYTES]) -> Self {
        Self(Arc::new(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; ML_DSA_KEY_BYTES] {
        &self.0
    }

    /// Whether this key has signed these bytes, with the empty context.
    pub(crate) fn has_signed(&self, signed: &[u8], signature: &[u8]) -> bool {
        // This expands the key, which is most of the work. No one verifies enough of them to keep the result.
        let key = VerifyingKey::<MlDsa44>::decode(&EncodedVerifyingKey::<MlDsa44>::from(*self.0));
        Signature::try_from(signature).is_ok_and(|signature| key.verify_with_context(signed, &[], &signature))
    }
}

impl fmt::Debug for MlDsaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MlDsaKey({})", encode_base64(self.as_bytes()))
    }
}
