//! minisign's signatures: prehashed (`ED`) only, with a trusted comment that is not empty.
//!
//! The legacy kind (`Ed`) signs the bytes of a file themselves. A file of 64 bytes would then be what we sign (D34).

use blake2::{Blake2b512, Digest as _};

use super::message::FormatMessage;
use crate::values::{
    digest::Sha256,
    key::{PublicKey, Signature, decode_padded_base64, encode_base64},
    path::RepoPath,
};

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
pub fn message(sums: &str) -> FormatMessage {
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

pub fn write(key: &PublicKey, comment: &str, pair: &Pair) -> String {
    let signature = encode_base64(&[PREHASHED, &key_id(key), pair.signature.as_bytes()].concat());
    let global = pair.global.to_base64();
    format!("{UNTRUSTED}\n{signature}\n{TRUSTED}{comment}\n{global}\n")
}

/// Parses the signatures in the text. Its kind, its key and its comments can only be these.
pub fn parse(text: &str, key: &PublicKey, comment: &str) -> Option<Pair> {
    let mut lines = text.strip_suffix('\n')?.splitn(4, '\n').skip(1);
    let (signature, _comment, global) = (lines.next()?, lines.next()?, lines.next()?);
    let blob = decode_padded_base64(signature)?;
    let global = decode_padded_base64(global)?.try_into().ok()?;
    let pair =
        Pair { signature: Signature::from_bytes(*blob.last_chunk()?), global: Signature::from_bytes(global) };
    (write(key, comment, &pair) == text).then_some(pair)
}
