//! The history of a project's signers files (spec §2.4, D12), in order of activation, and the agreement by which the next
//! one waits (D131).
//!
//! It is stored as one file an entry, which never changes (D42). What is served as one document is put together from
//! these files, byte for byte what [`History::write`] gives.

use std::{collections::BTreeSet, time::Duration};

use serde::Serialize;

use crate::documents::{
    signatures::Collected, signatures::SignatureSet, signers::Metadata, signers::SignersFile,
};
use crate::json_fields;
use crate::values::{digest::Sha512, json::ParseError, key::PublicKey, key::Signature, time::Timestamp};

/// All signers files that were ever in force, in order of activation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct History {
    pub entries: Vec<HistoryEntry>,
}

/// Signers file and metadata are kept as the exact text that was signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryEntry {
    /// The exact text of the signers file.
    pub signers_config: String,
    pub signatures: SignatureSet,
    /// The exact text of its metadata.
    pub metadata: String,
    pub metadata_signatures: SignatureSet,
    /// The time at which it became active.
    pub timestamp: Timestamp,
    /// The time at which it had all consent, if it then waited for the delay of the file before (D133).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed_at: Option<Timestamp>,
}

/// What rules ask of an entry, without its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFacts {
    /// The digest of the signers file.
    pub signers: Sha512,
    pub activated_at: Timestamp,
    /// When the signers file was fetched; `None` if its metadata cannot be read.
    pub retrieved_at: Option<Timestamp>,
    /// Whether the signers file wants releases reproduced before anyone uses them.
    pub requires_rebuilds: bool,
    /// The size as a file of its own, and as a part of the assembled document.
    pub stored_bytes: usize,
    pub assembled_bytes: usize,
}

impl EntryFacts {
    /// Reads the facts of an entry as it is stored.
    pub fn parse(stored: &[u8]) -> Result<Self, ParseError> {
        let entry = HistoryEntry::parse(stored)?;
        let signers = SignersFile::parse(entry.signers_config.as_bytes()).ok();
        let metadata = Metadata::parse(entry.metadata.as_bytes()).ok();
        Ok(Self {
            signers: Sha512::of(entry.signers_config.as_bytes()),
            activated_at: entry.timestamp,
            retrieved_at: metadata.map(|metadata| metadata.origin.retrieved_at),
            requires_rebuilds: signers
                .is_some_and(|file| file.rebuilds().is_some_and(|rebuilds| rebuilds.required)),
            stored_bytes: stored.len(),
            assembled_bytes: assembled_len(stored),
        })
    }
}

/// What [`History::write`] puts before the first entry, between two, and after the last.
pub const DOCUMENT_FRAME: [&str; 3] = ["{\n  \"entries\": [\n", ",\n", "\n  ]\n}\n"];
/// The indentation that the document puts before each line of an entry.
pub const DOCUMENT_INDENT: &str = "    ";

/// How long a history is to which an entry of this size is added.
pub fn grown_len(facts: &[EntryFacts], assembled_bytes: usize) -> usize {
    let [beginning, between, end] = DOCUMENT_FRAME.map(str::len);
    let before: usize = facts.iter().map(|facts| facts.assembled_bytes + between).sum();
    beginning + before + assembled_bytes + end
}

fn assembled_len(stored: &[u8]) -> usize {
    let (lines, breaks) = (stored_lines(stored).count(), stored.ends_with(b"\n") as usize);
    stored.len() - breaks + lines * DOCUMENT_INDENT.len()
}

/// Strings of JSON have no line break in them, so each line of a stored entry is a line of the document.
pub fn stored_lines(entry: &[u8]) -> impl Iterator<Item = &[u8]> {
    entry.strip_suffix(b"\n").unwrap_or(entry).split(|byte| *byte == b'\n')
}

json_fields!(document History { entries });
// As it is stored.
json_fields!(document HistoryEntry {
    signers_config, signatures, metadata, metadata_signatures, timestamp, agreed_at: maybe,
});

impl HistoryEntry {
    /// What an entry takes of the assembled document at most, of texts that these keys may sign.
    pub fn largest_assembled(
        signers_config: String,
        metadata: String,
        signers: &BTreeSet<PublicKey>,
        now: Timestamp,
    ) -> usize {
        // All signatures have one length, and so have all times to the second.
        let timestamp = now.to_whole_seconds();
        let collected = Collected { signature: Signature::LONGEST, collected_at: timestamp };
        let mut signatures = SignatureSet::default();
        signers.iter().for_each(|key| signatures.add(*key, collected));
        let metadata_signatures = signatures.clone();
        let agreed_at = Some(timestamp);
        let entry = Self { signers_config, signatures, metadata, metadata_signatures, timestamp, agreed_at };
        assembled_len(&entry.write())
    }
}

// The agreement to a rotation that has all consent and waits (D131): since when, and until when. It lies beside the
// pending signers file.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Agreement {
    pub agreed_at: Timestamp,
    /// The time at which it takes effect.
    pub due_at: Timestamp,
}

json_fields!(document Agreement { agreed_at, due_at });

impl Agreement {
    /// The agreement to a proposal that has all consent from now on.
    pub fn new(now: Timestamp, delay: Duration) -> Self {
        let now = now.to_whole_seconds();
        Self { agreed_at: now, due_at: now.later(delay) }
    }
}
