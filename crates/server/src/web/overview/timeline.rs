//! All signers files that were ever in force: what each changed, and who agreed.

use std::ops::Range;

use countersign_core::{
    documents::{
        history::HistoryEntry,
        layout,
        metadata::{Metadata, Origin},
        signers::SignersFile,
    },
    rules::{
        snapshot::{ReadError, Snapshot},
        stored,
    },
    values::{digest::Sha512, json::ParseError, path::RepoPath, time::Timestamp},
};
use countersign_explain::{
    difference::{SignersChange, list_changes},
    progress::{Member, Names},
};

#[derive(Debug, Clone)]
pub struct TimelineStep {
    /// The number of the step, counted from 1, the first signers file.
    pub number: usize,
    pub activated_at: Timestamp,
    /// The time in the signers file itself.
    pub dated: Timestamp,
    pub digest: Sha512,
    pub origin: Origin,
    pub changes: Vec<SignersChange>,
    pub agreed: Vec<Member>,
}

/// Lists these steps of a project's history, counted from 0 at the oldest. Reads only their entries and the one before.
pub fn list_steps(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    range: Range<usize>,
) -> Result<Vec<TimelineStep>, ReadError> {
    let len = stored::history_len(snapshot, project);
    let (from, to) = (range.start.min(len), range.end.min(len));
    let entries = stored::history(snapshot, project, from.max(1)..=to)?.entries;
    let mut before = None;
    let mut steps = Vec::new();
    for (number, entry) in (from.max(1)..).zip(&entries) {
        let path = layout::history_entry(project, number);
        let signers = stored::parse_stored(&path, SignersFile::parse(entry.signers_config.as_bytes()))?;
        if number > from {
            let step = describe_step(entry, number, before.as_ref(), &signers);
            steps.push(stored::parse_stored(&path, step)?);
        }
        before = Some(signers);
    }
    Ok(steps)
}

fn describe_step(
    entry: &HistoryEntry,
    number: usize,
    before: Option<&SignersFile>,
    signers: &SignersFile,
) -> Result<TimelineStep, ParseError> {
    let names = Names::of(before.into_iter().chain([signers]));
    Ok(TimelineStep {
        number,
        activated_at: entry.timestamp,
        dated: signers.timestamp(),
        digest: Sha512::of(entry.signers_config.as_bytes()),
        origin: Metadata::parse(entry.metadata.as_bytes())?.origin,
        changes: list_changes(before, signers),
        agreed: names.list_signed(&entry.signatures),
    })
}
