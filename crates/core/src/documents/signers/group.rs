//! Groups of signers: keys, their names, and how many of them must sign.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use crate::values::{
    bounds::SIGNER_NAME_CHARS,
    json::{Field, ParseError},
    key::PublicKey,
    shown::is_unseen,
};

const KIND: &str = "key";
const FORMAT: &str = "ed25519";

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

pub(super) fn parse_role(field: Field<'_>) -> Result<Vec<Group>, ParseError> {
    let groups = field.array()?;
    if groups.is_empty() {
        return Err(field.error("must have at least one group; leave the field out for no such role"));
    }
    groups.into_iter().map(parse_group).collect()
}

fn parse_group(field: Field<'_>) -> Result<Group, ParseError> {
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
    let threshold_field = object.required("threshold")?;
    let threshold = usize::try_from(threshold_field.integer()?).unwrap_or(usize::MAX);
    if threshold == 0 || threshold > signers.len() {
        return Err(threshold_field.error(format!("must be between 1 and {}", signers.len())));
    }
    Ok(Group { threshold, signers })
}

pub(super) fn parse_signer(field: &Field<'_>) -> Result<Signer, ParseError> {
    let object = field.object(&["kind", "data", "name"])?;
    let kind = object.required("kind")?;
    if kind.string()? != KIND {
        return Err(kind.error("must be \"key\""));
    }
    let data = object.required("data")?.object(&["format", "pubkey"])?;
    if let Some(format) = data.optional("format")
        && format.string()? != FORMAT
    {
        return Err(format.error("must be \"ed25519\""));
    }
    let key = data.required("pubkey")?.parsed(PublicKey::parse)?;
    let name = object.optional("name").map(|name| name.parsed(parse_name)).transpose()?;
    Ok(Signer { key, name })
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
