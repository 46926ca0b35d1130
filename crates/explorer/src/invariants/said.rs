//! What signers said of a release, as the stored files have it. It is read here once more on purpose.

use std::collections::BTreeMap;

use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::Value;
use sha2::{Digest as _, Sha512};

use crate::invariants::documents::{Key, read_key, read_signature};

/// What a key said last of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaidDocument {
    pub objection: Option<String>,
    pub subject: String,
    pub timestamp: String,
    pub is_valid: bool,
}

pub type Said = BTreeMap<Key, SaidDocument>;

/// What each key said; `None` where the file cannot be read.
pub fn read_said(value: &Value) -> Option<Said> {
    value.get("objections")?.as_object()?.iter().map(|(name, entry)| read_entry(name, entry)).collect()
}

/// What was said of contents before, in the order in which they went; `None` where the file cannot be read.
pub fn read_earlier(value: &Value) -> Option<Vec<(Key, SaidDocument)>> {
    let entry = |entry: &Value| read_entry(entry.get("public_key")?.as_str()?, entry);
    value.get("earlier_objections")?.as_array()?.iter().map(entry).collect()
}

fn read_entry(name: &str, entry: &Value) -> Option<(Key, SaidDocument)> {
    let (key, text) = (read_key(name)?, entry.get("document")?.as_str()?);
    let signature: Signature = read_signature(entry)?;
    let document: Value = serde_json::from_str(text).ok()?;
    let of = |name: &str| Some(document.get(name)?.as_str()?.to_owned());
    let digest: [u8; 64] = Sha512::digest(text.as_bytes()).into();
    let verifies = |key: VerifyingKey| key.verify_strict(&digest, &signature).is_ok();
    Some((
        key,
        SaidDocument {
            objection: of("objection"),
            subject: of("subject_digest")?,
            timestamp: of("timestamp")?,
            is_valid: VerifyingKey::from_bytes(&key).is_ok_and(verifies),
        },
    ))
}
