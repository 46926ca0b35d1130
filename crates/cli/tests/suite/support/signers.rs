//! Signers files as their authors write them (D8).

use countersign_core::values::time::Timestamp;
use serde_json::{Value, json};

use super::people::{Person, seconds_ago};

#[derive(Clone)]
pub(crate) struct SignersFile {
    json: Value,
    /// How long it is at least: with spaces behind it, which are part of what is signed.
    length: usize,
}

impl SignersFile {
    /// Dated ten days back, so that later ones can follow; no role yet.
    pub(crate) fn new() -> Self {
        Self::dated(days_ago(10))
    }

    pub(crate) fn dated(timestamp: Timestamp) -> Self {
        Self { json: json!({ "version": 1, "timestamp": timestamp.to_string() }), length: 0 }
    }

    /// One group of artifact signers and no other role.
    pub(crate) fn of(threshold: usize, signers: &[&Person]) -> Self {
        Self::new().artifact(threshold, signers)
    }

    pub(crate) fn artifact(self, threshold: usize, signers: &[&Person]) -> Self {
        self.group("artifact_signers", threshold, signers)
    }

    pub(crate) fn admin(self, threshold: usize, signers: &[&Person]) -> Self {
        self.group("admin_keys", threshold, signers)
    }

    pub(crate) fn master(self, threshold: usize, signers: &[&Person]) -> Self {
        self.group("master_keys", threshold, signers)
    }

    pub(crate) fn revocation(self, threshold: usize, signers: &[&Person]) -> Self {
        self.group("revocation_keys", threshold, signers)
    }

    fn group(self, role: &str, threshold: usize, signers: &[&Person]) -> Self {
        let signers: Vec<_> = signers.iter().map(|person| signer(&person.key())).collect();
        self.and(role, json!({ "threshold": threshold, "signers": signers }))
    }

    /// One more group of a role.
    pub(crate) fn and(mut self, role: &str, group: Value) -> Self {
        match &mut self.json[role] {
            Value::Array(groups) => groups.push(group),
            role => *role = json!([group]),
        }
        self
    }

    /// Gives the content another date, so that the file can follow the first one.
    pub(crate) fn redated(mut self, timestamp: Timestamp) -> Self {
        self.json["timestamp"] = json!(timestamp.to_string());
        self
    }

    pub(crate) fn padded_to(mut self, length: usize) -> Self {
        self.length = length;
        self
    }

    pub(crate) fn with(mut self, field: &str, value: Value) -> Self {
        self.json[field] = value;
        self
    }

    /// Not our own layout, so that a server which stores anything but the fetched bytes is found out.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!(" {} \n\n", self.json).into_bytes();
        bytes.resize(bytes.len().max(self.length), b' ');
        bytes
    }
}

pub(crate) fn signer(key: &str) -> Value {
    json!({ "kind": "key", "data": { "pubkey": key } })
}

/// A group of people with their names, as `signers new` writes it.
pub(crate) fn named_group(threshold: usize, names: &[&str]) -> Value {
    let signers: Vec<Value> = names.iter().map(|name| named_signer(&Person::named(name), name)).collect();
    json!([{ "threshold": threshold, "signers": signers }])
}

pub(crate) fn named_signer(person: &Person, name: &str) -> Value {
    json!({ "kind": "key", "data": { "pubkey": person.key() }, "name": name })
}

pub(crate) fn seconds_from_now(seconds: i64) -> Timestamp {
    seconds_ago(-seconds)
}

/// Days before a fixed day in the past: the same file has the same bytes in every run.
pub(crate) fn days_ago(days: i64) -> Timestamp {
    let reference = Timestamp::parse("2026-01-31T10:00:00Z").expect("a time");
    Timestamp::from_unix_seconds(reference.unix_seconds() - days * 24 * 3600).expect("near the reference")
}
