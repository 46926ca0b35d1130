//! Evidence that someone made up: whole projects with keys of their own, in the right form.

use countersign_core::values::{digest::Sha256, digest::Sha512, time::Timestamp};
use serde_json::{Map, Value, json};

use super::server::HostileServer;
use crate::support::{Person, days_ago};

/// A signers history that a test writes entry by entry. Each entry is signed as it must be, by whom the test says.
#[derive(Clone)]
pub(crate) struct Forgery {
    pub(crate) project: String,
    entries: Vec<Value>,
}

impl Forgery {
    pub(crate) fn of(project: &str) -> Self {
        Self { project: project.to_owned(), entries: Vec::new() }
    }

    /// Appends a file that follows from the one before.
    pub(crate) fn then(self, file: &[u8], origin: &Value, signers: &[&Person]) -> Self {
        let metadata = self.metadata(file, origin);
        self.then_recorded(file, &metadata, signature_set(file, signers), signature_set(&metadata, signers))
    }

    /// Appends what someone else has signed.
    pub(crate) fn then_recorded(
        mut self,
        file: &[u8],
        metadata: &[u8],
        signatures: Value,
        metadata_signatures: Value,
    ) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let before = self.entries.last().map(|entry| entry["timestamp"].as_str().expect("text"));
        let since = match before.map(|time| Timestamp::parse(time).expect("a time").unix_seconds()) {
            None => days_ago(9),
            Some(seconds) => Timestamp::from_unix_seconds(seconds + 1).expect("near now"),
        };
        self.entries.push(json!({
            "signers_config": text(file),
            "signatures": signatures,
            "metadata": text(metadata),
            "metadata_signatures": metadata_signatures,
            "timestamp": since.to_string(),
        }));
        self
    }

    /// The metadata of a file that follows the last entry.
    pub(crate) fn metadata(&self, file: &[u8], origin: &Value) -> Vec<u8> {
        let previous = self.entries.last().map(|entry| {
            let text = entry["signers_config"].as_str().expect("text");
            digest_of(text.as_bytes())
        });
        let metadata = json!({
            "version": 1,
            "origin": origin,
            "project_id": self.project,
            "signers_file_digest": digest_of(file),
            "previous": previous,
        });
        metadata.to_string().into_bytes()
    }

    pub(crate) fn history(&self) -> Value {
        json!({ "entries": self.entries })
    }

    /// Has a server show a release of this project, signed by these people, with all that belongs to it.
    pub(crate) fn show(&self, server: &HostileServer, index: &str, text: &str, signers: &[&Person]) {
        server.show_file(index, text);
        server.show_file(
            &format!("{index}.signatures.json"),
            signature_set(text.as_bytes(), signers).to_string(),
        );
        server.show_history(&self.project, index, &self.history());
        server.hide_file(&format!("{index}.revocation.json"));
    }
}

pub(crate) fn digest_of(bytes: &[u8]) -> String {
    Sha512::of(bytes).to_prefixed()
}

pub(crate) fn origin(kind: &str, url: &str) -> Value {
    json!({ "kind": kind, "url": url, "retrieval_url": url, "retrieved_at": days_ago(9).to_string() })
}

/// D9: who has signed these bytes.
pub(crate) fn signature_set(bytes: &[u8], signers: &[&Person]) -> Value {
    let collected_at = days_ago(9).to_string();
    let entries: Map<String, Value> = signers
        .iter()
        .map(|person| {
            let signature = person.sign_bytes(bytes);
            (person.key(), json!({ "signature": signature, "collected_at": collected_at }))
        })
        .collect();
    json!({ "entries": entries })
}

/// A file of an index.
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a str,
    pub(crate) source: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// D11: an index of these files.
pub(crate) fn index_of(project: &str, release_url: Option<&str>, files: &[Listed<'_>]) -> String {
    let files: Vec<_> = files
        .iter()
        .map(|file| {
            json!({
                "file_name": file.name,
                "size": file.bytes.len(),
                "source": file.source,
                "digests": { "sha256": Sha256::of(file.bytes).to_string() },
            })
        })
        .collect();
    json!({
        "version": 1,
        "project_id": project,
        "release_url": release_url,
        "mirrored_on": days_ago(5).to_string(),
        "published_on": null,
        "published_files": files,
    })
    .to_string()
}

/// D20: a document that says which file it means.
pub(crate) fn revocation_of(index: &[u8], reason: &str) -> String {
    let timestamp = days_ago(1).to_string();
    json!({ "reason": reason, "timestamp": timestamp, "subject_digest": digest_of(index) }).to_string()
}
