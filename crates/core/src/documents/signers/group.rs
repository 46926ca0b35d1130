//! Groups of signers: keys, their names, and how many of them must sign.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use crate::documents::fields::parse_threshold;
use crate::values::bounds::SIGNER_NAME_CHARS;
use crate::values::json::{Field, ParseError};
use crate::values::key::PublicKey;
use crate::values::shown::is_unseen;

/// A group of distinct keys, of which `threshold` must sign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    pub threshold: usize,
    pub signers: Vec<Signer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename = "key")]
pub struct Signer {
    #[serde(rename = "data", serialize_with = "write_data")]
    pub key: PublicKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Group {
    /// Keys without names.
    pub fn of_keys(threshold: usize, keys: &BTreeSet<PublicKey>) -> Self {
        Self { threshold, signers: keys.iter().map(|key| Signer { key: *key, name: None }).collect() }
    }

    pub fn contains(&self, key: &PublicKey) -> bool {
        self.signers.iter().any(|signer| signer.key == *key)
    }
}

pub fn keys_of(groups: &[Group]) -> impl Iterator<Item = PublicKey> {
    groups.iter().flat_map(|group| group.signers.iter().map(|signer| signer.key))
}

pub(super) fn parse_role(field: &Field<'_>) -> Result<Vec<Group>, ParseError> {
    let groups: Vec<Group> = field.list(parse_group)?;
    if groups.is_empty() {
        return Err(field.error("must have at least one group; leave the field out for no such role"));
    }
    Ok(groups)
}

fn parse_group(field: &Field<'_>) -> Result<Group, ParseError> {
    let object = field.object(&["threshold", "signers"])?;
    let list = object.required("signers")?;
    let mut keys = BTreeSet::new();
    let mut signers = Vec::new();
    for entry in list.array()? {
        let signer = parse_signer(&entry)?;
        if !keys.insert(signer.key) {
            return Err(entry.error(format!("the key {} is in this group already", signer.key)));
        }
        signers.push(signer);
    }
    if signers.is_empty() {
        return Err(list.error("must have at least one signer"));
    }
    let threshold = object.with("threshold", |field| parse_threshold(field, signers.len()))?;
    Ok(Group { threshold, signers })
}

pub(super) fn parse_signer(field: &Field<'_>) -> Result<Signer, ParseError> {
    let object = field.object(&["kind", "data", "name"])?;
    object.text("kind", |kind| (kind == "key").then_some(()).ok_or("must be \"key\""))?;
    let data = object.required("data")?.object(&["format", "pubkey"])?;
    data.maybe_text("format", |format| (format == "ed25519").then_some(()).ok_or("must be \"ed25519\""))?;
    Ok(Signer { key: data.get("pubkey")?, name: object.maybe_text("name", parse_name)? })
}

fn parse_name(text: &str) -> Result<String, String> {
    if text.chars().count() > SIGNER_NAME_CHARS {
        return Err(format!("must have at most {SIGNER_NAME_CHARS} characters"));
    }
    if text.chars().any(is_unseen) {
        return Err("must have no control, blank or invisible characters".to_owned());
    }
    Ok(text.to_owned())
}

fn write_data<S: Serializer>(key: &PublicKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("pubkey", key)])
}
