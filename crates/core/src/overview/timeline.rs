//! The signers files that were ever in force: what each changed, and who agreed.

use std::ops::Range;

use super::{Member, Names};
use crate::{
    difference::{Change, list_changes},
    digest::Sha512,
    history::{History, HistoryEntry},
    json::ParseError,
    layout,
    metadata::{Metadata, Origin},
    path::RepoPath,
    signers::SignersFile,
    snapshot::ReadError,
    stored,
    time::Timestamp,
};

#[derive(Debug, Clone)]
pub struct Step {
    /// Counted from 1, the first signers file.
    pub number: usize,
    pub activated_at: Timestamp,
    /// The time that the signers file itself bears.
    pub dated: Timestamp,
    pub digest: Sha512,
    pub origin: Origin,
    pub changes: Vec<Change>,
    pub agreed: Vec<Member>,
}

/// These steps of a project's history, counted from 0 at the oldest.
pub fn list_steps(
    project: &RepoPath,
    history: &History,
    range: Range<usize>,
) -> Result<Vec<Step>, ReadError> {
    let entries = &history.entries;
    let (from, to) = (range.start.min(entries.len()), range.end.min(entries.len()));
    let parse = |entry: &HistoryEntry| SignersFile::parse(entry.signers_config.as_bytes());
    let corrupt = |parsed| stored::parse_stored(&layout::history(project), parsed);
    let mut before = corrupt(from.checked_sub(1).map(|last| parse(&entries[last])).transpose())?;
    let mut steps = Vec::new();
    for (number, entry) in entries.iter().enumerate().take(to).skip(from) {
        let signers = stored::parse_stored(&layout::history(project), parse(entry))?;
        let step = describe_step(entry, number + 1, before.as_ref(), &signers);
        steps.push(stored::parse_stored(&layout::history(project), step)?);
        before = Some(signers);
    }
    Ok(steps)
}

fn describe_step(
    entry: &HistoryEntry,
    number: usize,
    before: Option<&SignersFile>,
    signers: &SignersFile,
) -> Result<Step, ParseError> {
    let names = Names::of(before.into_iter().chain([signers]));
    Ok(Step {
        number,
        activated_at: entry.timestamp,
        dated: signers.timestamp(),
        digest: Sha512::of(entry.signers_config.as_bytes()),
        origin: Metadata::parse(entry.metadata.as_bytes())?.origin,
        changes: list_changes(before, signers),
        agreed: names.list_signed(&entry.signatures),
    })
}
