//! Ed25519 keys and signatures, and their spellings (D1–D3).

use std::{collections::BTreeMap, fmt};

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use ed25519_dalek::Signer as _;
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::json_words;
use crate::values::{digest::Sha512, sshsig, sshsig::Touch, wire};

/// Decodes with or without padding; what it encodes has padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An Ed25519 public key. Compared by its 32 bytes, never as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, description = "An Ed25519 public key: base64 of its 32 bytes, the same behind `svc-pub:`, or an OpenSSH line (`ssh-ed25519 AAAA… comment`, or `sk-ssh-ed25519@openssh.com AAAA… comment` of a FIDO key). Compared by its bytes."))]
pub struct PublicKey([u8; 32]);

/// What makes the signatures of a key (D255). A key is its 32 bytes, whatever makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyFormat {
    Ed25519,
    /// A hardware key that signs only what it frames itself, and only if someone touches it.
    Fido,
}

json_words!(KeyFormat { Ed25519 = "ed25519", Fido = "sk-ssh-ed25519" }
    "must be \"ed25519\" or \"sk-ssh-ed25519\"");

/// An Ed25519 signature, perhaps by a FIDO key. Well-formed; whether it is right only `PublicKey::verify` says.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, description = "An Ed25519 signature: base64 of its 64 bytes. A FIDO key's has 69: flags and counter follow."))]
pub struct Signature(SignatureParts);

#[derive(Clone, Copy, PartialEq, Eq)]
struct SignatureParts {
    bytes: [u8; 64],
    /// What a FIDO key adds. Whether it is there, the length of the signature says.
    touch: Option<Touch>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error("not base64 of 32 bytes")]
    Encoding,
    #[error("it must begin with `svc-pub:`")]
    MissingPrefix,
    #[error("not in its canonical form, without padding")]
    NotCanonical,
    #[error("not an `ssh-ed25519` or `sk-ssh-ed25519@openssh.com` public key line")]
    Ssh,
    #[error("a FIDO key that was made for another application than `ssh:`")]
    Application,
    #[error("not a point of the Ed25519 curve")]
    NotAPoint,
    #[error("a weak key (of small order) proves nothing")]
    Weak,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not base64 of 64 bytes, or of the 69 of a FIDO key")]
pub struct SignatureFormatError;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the signature does not verify")]
pub struct BadSignature;

impl PublicKey {
    /// Parses any accepted spelling: base64, `svc-pub:` + base64, or an OpenSSH line (D2).
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        Self::parse_with_format(text).map(|(key, _)| key)
    }

    /// Parses any accepted spelling. Only an OpenSSH line says what the format of the key is.
    pub fn parse_with_format(text: &str) -> Result<(Self, Option<KeyFormat>), KeyError> {
        if text.starts_with(wire::PUBLIC_KEY_PREFIX) {
            return Ok((Self::parse_prefixed(text)?, None));
        }
        match text.split_once(' ') {
            Some((name, rest)) => {
                let format = KeyFormat::of_ssh_type(name).ok_or(KeyError::Ssh)?;
                Ok((parse_ssh_blob(format, rest)?, Some(format)))
            }
            None => Ok((Self::from_bytes(decode_array(text).ok_or(KeyError::Encoding)?)?, None)),
        }
    }

    /// The spelling of headers: `svc-pub:` + base64.
    pub fn parse_prefixed(text: &str) -> Result<Self, KeyError> {
        let encoded = text.strip_prefix(wire::PUBLIC_KEY_PREFIX).ok_or(KeyError::MissingPrefix)?;
        Self::from_bytes(decode_array(encoded).ok_or(KeyError::Encoding)?)
    }

    /// The canonical spelling, in a list of signatures. Whether these bytes are a usable key shows when the signature is
    /// verified, and only keys of a signers file are ever counted: checking the point here would cost most of the time.
    pub fn parse_recorded(text: &str) -> Result<Self, KeyError> {
        let encoded = text.strip_prefix(wire::PUBLIC_KEY_PREFIX).ok_or(KeyError::MissingPrefix)?;
        let key = Self(decode_array(encoded).ok_or(KeyError::Encoding)?);
        // The decoder accepts no other alphabet and no stray bits: padding is the only choice.
        if encoded.ends_with('=') { Err(KeyError::NotCanonical) } else { Ok(key) }
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, KeyError> {
        if !is_reduced(&bytes) {
            return Err(KeyError::NotAPoint);
        }
        let point = ed25519_dalek::VerifyingKey::from_bytes(&bytes).map_err(|_| KeyError::NotAPoint)?;
        if point.is_weak() { Err(KeyError::Weak) } else { Ok(Self(bytes)) }
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Writes padded base64 without prefix: the spelling in response bodies (D1).
    pub fn to_base64(self) -> String {
        BASE64.encode(self.0)
    }

    /// Writes the spelling of [`PublicKey::to_base64`], as a field of a body.
    pub fn serialize_base64<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }

    /// Writes the first and the last six characters, as in `svc-pub:BqCq9x…Zll7hg`. These are 70 bits, of which we assume
    /// that no one finds a second key (D54).
    pub fn short(self) -> String {
        let code = self.to_base64();
        let code = code.trim_end_matches('=');
        format!("{}{}…{}", wire::PUBLIC_KEY_PREFIX, &code[..6], &code[code.len() - 6..])
    }

    /// Writes OpenSSH's binary encoding, by which an agent knows the key.
    pub fn to_ssh_blob(self, format: KeyFormat) -> Vec<u8> {
        let (head, tail) = format.around_blob();
        [&head[..], &self.0, &tail].concat()
    }

    /// The line of a `.pub` file, without its end. `comment` must have no line break; an empty one is left out.
    pub fn to_ssh_line(self, comment: &str) -> String {
        let (format, separator) = (KeyFormat::Ed25519, if comment.is_empty() { "" } else { " " });
        format!("{} {}{separator}{comment}", format.ssh_type(), BASE64.encode(self.to_ssh_blob(format)))
    }

    /// Checks a signature over `digest`, strictly (RFC 8032 canonical S, no small-order points).
    pub fn verify(&self, digest: &Sha512, signature: &Signature) -> Result<(), BadSignature> {
        self.verify_text(&signature.format().message(digest), signature)
    }

    /// Checks a signature over a text itself, as strictly. Only `log` (D84) and `other_format` (D101) ask for this.
    pub(crate) fn verify_text(&self, text: &[u8], signature: &Signature) -> Result<(), BadSignature> {
        match signature.0.touch {
            None => self.verify_bytes(text, signature),
            Some(touch) if touch.is_present() => self.verify_bytes(&touch.around(text), signature),
            Some(_) => Err(BadSignature),
        }
    }

    fn verify_bytes(&self, signed: &[u8], signature: &Signature) -> Result<(), BadSignature> {
        let key = ed25519_dalek::VerifyingKey::from_bytes(&self.0).map_err(|_| BadSignature)?;
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0.bytes);
        key.verify_strict(signed, &signature).map_err(|_| BadSignature)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", wire::PUBLIC_KEY_PREFIX, BASE64.encode(self.0).trim_end_matches('='))
    }
}

/// Writes the key as in our documents: with prefix, without padding.
impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl KeyFormat {
    /// The name by which OpenSSH calls such keys.
    pub fn ssh_type(self) -> &'static str {
        match self {
            Self::Ed25519 => "ssh-ed25519",
            Self::Fido => "sk-ssh-ed25519@openssh.com",
        }
    }

    pub fn of_ssh_type(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.ssh_type() == name)
    }

    /// What the key is asked to sign for this digest (D3): the 64 bytes of it, or a message of OpenSSH that has them.
    pub fn message(self, digest: &Sha512) -> Vec<u8> {
        match self {
            Self::Ed25519 => digest.as_bytes().to_vec(),
            Self::Fido => sshsig::own_message(digest),
        }
    }

    /// What stands before and behind the 32 bytes of a key in OpenSSH's encoding.
    fn around_blob(self) -> (Vec<u8>, Vec<u8>) {
        let head = [&sshsig::string(self.ssh_type().as_bytes())[..], &[0, 0, 0, 32]].concat();
        match self {
            Self::Ed25519 => (head, Vec::new()),
            Self::Fido => (head, sshsig::string(sshsig::APPLICATION.as_bytes())),
        }
    }
}

impl Signature {
    /// The longest signature that there is, for counting how much room many of them take.
    pub const LONGEST: Self = Self::of([0; 64], Some(Touch { flags: 0, counter: [0; 4] }));

    const fn of(bytes: [u8; 64], touch: Option<Touch>) -> Self {
        Self(SignatureParts { bytes, touch })
    }

    pub fn parse(text: &str) -> Result<Self, SignatureFormatError> {
        let fido = || decode_array(text).map(Self::from_fido_bytes);
        decode_array(text).map(Self::from_bytes).or_else(fido).ok_or(SignatureFormatError)
    }

    pub fn from_bytes(bytes: [u8; 64]) -> Self {
        Self::of(bytes, None)
    }

    /// The signature of a FIDO key, with flags and counter behind it.
    pub fn from_fido_bytes(bytes: [u8; 69]) -> Self {
        let [signature @ .., flags, a, b, c, d] = bytes;
        Self::of(signature, Some(Touch { flags, counter: [a, b, c, d] }))
    }

    pub fn format(&self) -> KeyFormat {
        if self.0.touch.is_some() { KeyFormat::Fido } else { KeyFormat::Ed25519 }
    }

    /// What a FIDO key has signed for this digest: 69 bytes. `None` if another key signed the digest itself.
    pub fn framed(&self, digest: &Sha512) -> Option<Vec<u8>> {
        self.0.touch.map(|touch| touch.around(&sshsig::own_message(digest)))
    }

    /// The 64 bytes alone, without what a FIDO key adds.
    pub fn ed25519_bytes(&self) -> &[u8; 64] {
        &self.0.bytes
    }

    /// All of it: 64 bytes, or 69 of a FIDO key.
    pub fn to_bytes(self) -> Vec<u8> {
        let touch = self.0.touch.map(|Touch { flags, counter: [a, b, c, d] }| [flags, a, b, c, d]);
        [&self.0.bytes[..], touch.as_ref().map_or(&[], |touch| touch)].concat()
    }

    /// Writes padded base64: the spelling inside JSON (D1).
    pub fn to_base64(self) -> String {
        BASE64.encode(self.to_bytes())
    }

    /// Writes unpadded base64: the spelling in headers (D1).
    pub fn to_header(self) -> String {
        self.to_base64().trim_end_matches('=').to_owned()
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({})", self.to_base64())
    }
}

/// An Ed25519 secret key. It has no `Display` and shows nothing of itself in `Debug`.
pub struct SecretKey(ed25519_dalek::SigningKey);

impl SecretKey {
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    pub fn sign(&self, digest: &Sha512) -> Signature {
        Signature::from_bytes(self.0.sign(digest.as_bytes()).to_bytes())
    }

    /// Signs a text itself: a note (D84), or a message of `other_format` (D101). All else that a signer's key signs is
    /// 64 bytes of a digest.
    pub(crate) fn sign_text(&self, text: &[u8]) -> Signature {
        Signature::from_bytes(self.0.sign(text).to_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public_key())
    }
}

/// Bytes as base64 in a JSON body.
pub fn encode_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Decodes the standard alphabet, padded or not (D1).
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    if is_half_padded(text) { None } else { BASE64.decode(text).ok() }
}

/// Decodes padded base64 in the one spelling of these bytes: for texts that have one form only.
pub fn decode_padded_base64(text: &str) -> Option<Vec<u8>> {
    decode_base64(text).filter(|bytes| encode_base64(bytes) == text)
}

fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    // Room for the longest of them, a signature, and for what the decoder wants beyond it.
    let mut buffer = [0; 72];
    let length = if is_half_padded(text) { None } else { BASE64.decode_slice(text, &mut buffer).ok() }?;
    buffer[..length].try_into().ok()
}

/// Whether padding is there in part: the decoder alone would accept half of it.
fn is_half_padded(text: &str) -> bool {
    text.ends_with('=') && !text.len().is_multiple_of(4)
}

/// Whether the coordinate in an encoded point is below the field's prime, 2^255 - 19. A few points have a second
/// encoding above it, and only one may stand for the key. (The points with two signs are weak.)
fn is_reduced(bytes: &[u8; 32]) -> bool {
    let [lowest, middle @ .., highest] = bytes;
    *lowest < 0xed || highest & 0x7f != 0x7f || middle.iter().any(|byte| *byte != 0xff)
}

/// Parses what follows the type in an OpenSSH line: base64 of length-prefixed strings, then an optional comment.
fn parse_ssh_blob(format: KeyFormat, rest: &str) -> Result<PublicKey, KeyError> {
    let blob = decode_base64(rest.split(' ').next().unwrap_or(rest)).ok_or(KeyError::Ssh)?;
    let (head, tail) = format.around_blob();
    let rest = blob.strip_prefix(&head[..]).and_then(|rest| rest.split_first_chunk());
    let (key, behind) = rest.ok_or(KeyError::Ssh)?;
    match format {
        _ if behind == tail => PublicKey::from_bytes(*key),
        KeyFormat::Ed25519 => Err(KeyError::Ssh),
        KeyFormat::Fido => Err(KeyError::Application),
    }
}

/// Writes a map by key in the order of the keys as text, which is not that of their bytes.
pub(crate) fn sorted_as_text<T: Serialize, S: Serializer>(
    entries: &BTreeMap<PublicKey, T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let entries: BTreeMap<_, _> = entries.iter().map(|(key, entry)| (key.to_string(), entry)).collect();
    serializer.collect_map(entries)
}
