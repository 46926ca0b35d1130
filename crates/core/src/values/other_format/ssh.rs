//! SSHSIG (OpenSSH's PROTOCOL.sshsig): an Ed25519 key, namespace `file`, SHA-512, armored.

use super::message::FormatMessage;
use crate::values::{
    digest::Sha512,
    key::{PublicKey, Signature, decode_padded_base64, encode_base64},
    wire,
};

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
pub fn message(sums: &str) -> FormatMessage {
    let digest = Sha512::of(sums.as_bytes());
    let fields = [NAMESPACE.as_bytes(), RESERVED, HASH, digest.as_bytes()].map(string);
    FormatMessage([MAGIC, &fields.concat()].concat())
}

pub fn write(key: &PublicKey, signature: &Signature) -> String {
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
pub fn parse(text: &str, key: &PublicKey) -> Option<Signature> {
    // Before anything is copied: each text of a key has the same length.
    if text.len() != write(key, &Signature::from_bytes([0; 64])).len() {
        return None;
    }
    let armored = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let blob = decode_padded_base64(&armored.replace('\n', ""))?;
    let signature = Signature::from_bytes(*blob.last_chunk()?);
    (write(key, &signature) == text).then_some(signature)
}

fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("fields are short");
    [&length.to_be_bytes(), bytes].concat()
}
