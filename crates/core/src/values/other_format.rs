//! Signatures that other programs verify (D100, D101): over the `SHA256SUMS` of a release, as OpenSSH and minisign write
//! them. A text has one form only: it is read, written again, and compared.

use std::fmt;

use blake2::{Blake2b512, Digest as _};
use thiserror::Error;

use crate::json_words;
use crate::values::key::{PublicKey, SecretKey, Signature, decode_padded_base64, encode_base64};
use crate::values::{digest::Sha256, digest::Sha512, path::RepoPath, wire};

/// A format besides our own. Sorted by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "lowercase"))]
pub enum OtherFormat {
    Minisign,
    Ssh,
}

/// The `SHA256SUMS` of a release, and the index that it was made from.
#[derive(Debug, Clone, Copy)]
pub struct ReleaseSums<'a> {
    pub index: &'a RepoPath,
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FormatError {
    #[error("it is not in the one form that we accept for a signature of this key")]
    Form,
    #[error("it does not verify for the SHA256SUMS of the release")]
    Signature,
}

json_words!(OtherFormat { Minisign = "minisign", Ssh = "ssh" } "must be \"ssh\" or \"minisign\"");

impl OtherFormat {
    /// How many signatures of the key it takes. An agent that asks, asks so often.
    pub fn signature_count(self) -> usize {
        match self {
            Self::Minisign => 2,
            Self::Ssh => 1,
        }
    }

    /// The text that the other program reads; `sign` is the key's own operation.
    pub fn sign<E>(
        self,
        key: &PublicKey,
        sums: &ReleaseSums<'_>,
        sign: impl Fn(&FormatMessage) -> Result<Signature, E>,
    ) -> Result<String, E> {
        match self {
            Self::Ssh => Ok(write_ssh(key, &sign(&ssh_message(sums.text))?)),
            Self::Minisign => {
                let signature = sign(&minisign_message(sums.text))?;
                let comment = trusted_comment(sums.index);
                let global = sign(&global_message(&signature, &comment))?;
                Ok(write_minisign(key, &comment, &Pair { signature, global }))
            }
        }
    }

    /// Whether `text` is the signature of `key`, in the one form that it can have.
    pub fn verify(self, text: &str, key: &PublicKey, sums: &ReleaseSums<'_>) -> Result<(), FormatError> {
        let check = |message: &FormatMessage, signature: &Signature| {
            key.verify_text(message.as_bytes(), signature).map_err(|_| FormatError::Signature)
        };
        match self {
            Self::Ssh => {
                let signature = parse_ssh(text, key).ok_or(FormatError::Form)?;
                check(&ssh_message(sums.text), &signature)
            }
            Self::Minisign => {
                let comment = trusted_comment(sums.index);
                let pair = parse_minisign(text, key, &comment).ok_or(FormatError::Form)?;
                check(&minisign_message(sums.text), &pair.signature)?;
                check(&global_message(&pair.signature, &comment), &pair.global)
            }
        }
    }
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// The bytes that a key signs for other programs.

/// The bytes that a key signs for one of these formats. Only the formats in this folder make them, so no other bytes reach a key this
/// way (D34).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatMessage(Vec<u8>);

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

// minisign's signatures: prehashed (`ED`) only, with a trusted comment that is not empty.
//
// The legacy kind (`Ed`) signs the bytes of a file themselves. A file of 64 bytes would then be what we sign (D34).

const PREHASHED: &[u8] = b"ED";
/// The kind by which minisign names keys, whatever they sign.
const KEY_KIND: &[u8] = b"Ed";
const UNTRUSTED: &str = "untrusted comment: signature of SHA256SUMS";
const TRUSTED: &str = "trusted comment: ";

/// The signature of the file, and the one that binds the trusted comment to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    pub signature: Signature,
    pub global: Signature,
}

/// What the key signs first: the 64 bytes of BLAKE2b-512.
pub fn minisign_message(sums: &str) -> FormatMessage {
    FormatMessage(Blake2b512::digest(sums.as_bytes()).to_vec())
}

/// What it signs then: more than 64 bytes, since the comment is not empty.
pub fn global_message(signature: &Signature, comment: &str) -> FormatMessage {
    FormatMessage([signature.as_bytes(), comment.as_bytes()].concat())
}

/// Paths have no control characters, and neither has this.
pub fn trusted_comment(index: &RepoPath) -> String {
    format!("countersign {index}")
}

/// The id of a key. minisign chooses it at random. Ours follows from the key: the first 8 bytes of its SHA-256.
pub fn key_id(key: &PublicKey) -> [u8; 8] {
    let digest = Sha256::of(key.as_bytes());
    *digest.as_bytes().first_chunk().expect("32 bytes have a first 8")
}

/// The file that `minisign -V -p` reads.
pub fn write_public_key(key: &PublicKey) -> String {
    let id = key_id(key);
    let encoded = encode_base64(&[KEY_KIND, &id, key.as_bytes()].concat());
    // As minisign shows an id.
    format!("untrusted comment: minisign public key {:016X}\n{encoded}\n", u64::from_le_bytes(id))
}

pub fn write_minisign(key: &PublicKey, comment: &str, pair: &Pair) -> String {
    let signature = encode_base64(&[PREHASHED, &key_id(key), pair.signature.as_bytes()].concat());
    let global = pair.global.to_base64();
    format!("{UNTRUSTED}\n{signature}\n{TRUSTED}{comment}\n{global}\n")
}

/// Parses the signatures in the text. Its kind, its key and its comments can only be these.
pub fn parse_minisign(text: &str, key: &PublicKey, comment: &str) -> Option<Pair> {
    let mut lines = text.strip_suffix('\n')?.splitn(4, '\n').skip(1);
    let (signature, _comment, global) = (lines.next()?, lines.next()?, lines.next()?);
    let blob = decode_padded_base64(signature)?;
    let global = decode_padded_base64(global)?.try_into().ok()?;
    let pair =
        Pair { signature: Signature::from_bytes(*blob.last_chunk()?), global: Signature::from_bytes(global) };
    (write_minisign(key, comment, &pair) == text).then_some(pair)
}

// SSHSIG (OpenSSH's PROTOCOL.sshsig): an Ed25519 key, namespace `file`, SHA-512, armored.

/// The namespace that `ssh-keygen -Y verify` is told with `-n`.
pub const NAMESPACE: &str = "file";

const MAGIC: &[u8] = b"SSHSIG";
const VERSION: [u8; 4] = [0, 0, 0, 1];
const RESERVED: &[u8] = b"";
const HASH: &[u8] = b"sha512";
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----\n";
const END: &str = "-----END SSH SIGNATURE-----\n";
const LINE_CHARS: usize = 70;

/// What the key signs: 96 bytes, which begin with `SSHSIG`.
pub fn ssh_message(sums: &str) -> FormatMessage {
    let digest = Sha512::of(sums.as_bytes());
    let fields = [NAMESPACE.as_bytes(), RESERVED, HASH, digest.as_bytes()].map(string);
    FormatMessage([MAGIC, &fields.concat()].concat())
}

pub fn write_ssh(key: &PublicKey, signature: &Signature) -> String {
    let signature = [wire::SSH_KEY_TYPE.as_bytes(), signature.as_bytes()].map(string).concat();
    let fields = [&key.to_ssh_blob(), NAMESPACE.as_bytes(), RESERVED, HASH, &signature].map(string);
    let encoded = encode_base64(&[MAGIC, &VERSION, &fields.concat()].concat());
    let mut text = BEGIN.to_owned();
    for (position, character) in encoded.chars().enumerate() {
        if position > 0 && position.is_multiple_of(LINE_CHARS) {
            text.push('\n');
        }
        text.push(character);
    }
    text + "\n" + END
}

/// Parses the signature in the armor. Its key, namespace and hash can only be these.
pub fn parse_ssh(text: &str, key: &PublicKey) -> Option<Signature> {
    // Before anything is copied: each text of a key has the same length.
    if text.len() != write_ssh(key, &Signature::from_bytes([0; 64])).len() {
        return None;
    }
    let armored = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let blob = decode_padded_base64(&armored.replace('\n', ""))?;
    let signature = Signature::from_bytes(*blob.last_chunk()?);
    (write_ssh(key, &signature) == text).then_some(signature)
}

fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("fields are short");
    [&length.to_be_bytes(), bytes].concat()
}
