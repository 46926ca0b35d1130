//! The releases of a project, from the names of its files alone: there can be tens of thousands.

use std::ops::Range;

use countersign_api::newest::{ReleaseVersion, compare_versions, find_newest};
use countersign_core::{
    rules::stored::ReleaseState,
    values::{path::RepoPath, wire},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseEntry {
    pub dir: String,
    pub state: ReleaseState,
    /// A revocation waits for more signatures.
    pub is_revoking: bool,
    /// A signer has objected; whether one still does, only the file says.
    pub has_objections: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReleaseCounts {
    pub collecting: usize,
    pub complete: usize,
    pub revoked: usize,
    /// How many of the complete releases have a begun revocation.
    pub revoking: usize,
}

#[derive(Debug, Clone)]
pub struct ReleaseList {
    dir: RepoPath,
    entries: Vec<ReleaseEntry>,
    /// The last directory with a begun revocation, and with objections. Both files come before that of the signatures.
    revoking: String,
    objected: String,
}

impl ReleaseList {
    /// The list of the releases at or below `dir`.
    pub fn below(dir: &RepoPath) -> Self {
        Self { dir: dir.clone(), entries: Vec::new(), revoking: String::new(), objected: String::new() }
    }

    /// Notes a file. The files of one directory must come one after the other.
    pub fn see(&mut self, path: &str) {
        let Some((dir, name)) = path.rsplit_once('/') else { return };
        let Some(suffix) = name.strip_prefix(wire::INDEX_FILE) else { return };
        if suffix.strip_prefix(wire::REVOCATION_SUFFIX) == Some(wire::PENDING_SUFFIX) {
            dir.clone_into(&mut self.revoking);
        }
        if suffix == wire::OBJECTIONS_SUFFIX {
            dir.clone_into(&mut self.objected);
        }
        let Some(state) = state_told_by(suffix) else { return };
        // An index has one signatures file. If there were two, the first would count.
        let is_new = self.entries.last().is_none_or(|last| last.dir != dir);
        if is_new && dir.starts_with(self.dir.as_str()) {
            let is_revoking = state == ReleaseState::Complete && self.revoking == dir;
            let has_objections = self.objected == dir;
            self.entries.push(ReleaseEntry { dir: dir.to_owned(), state, is_revoking, has_objections });
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn count(&self) -> ReleaseCounts {
        self.entries.iter().fold(ReleaseCounts::default(), |mut counts, entry| {
            counts.revoking += usize::from(entry.is_revoking);
            match entry.state {
                ReleaseState::Collecting => counts.collecting += 1,
                ReleaseState::Complete => counts.complete += 1,
                ReleaseState::Revoked => counts.revoked += 1,
            }
            counts
        })
    }

    /// The one that is offered to visitors (D77).
    pub fn find_newest(&self) -> Option<&ReleaseEntry> {
        let at = self.dir.as_str().len();
        find_newest(&self.entries, |entry| {
            let ReleaseEntry { dir, state, is_revoking, .. } = *entry;
            ReleaseVersion { dir: &dir[at..], state: *state, is_revoking: *is_revoking }
        })
    }

    /// Keeps those in a state, whose directory below the project contains `words` in any letter case.
    pub fn filter(mut self, state: Option<ReleaseState>, words: &str) -> Self {
        let (at, words) = (self.dir.as_str().len(), words.to_lowercase());
        self.entries.retain(|entry| {
            state.is_none_or(|state| entry.state == state) && entry.dir[at..].to_lowercase().contains(&words)
        });
        self
    }

    /// The releases in this range: begun revocations first, then the highest version. Sorts only this range.
    pub fn newest(mut self, range: Range<usize>) -> Vec<ReleaseEntry> {
        // What all have in common need not be compared.
        let at = self.dir.as_str().len();
        let descending = |a: &ReleaseEntry, b: &ReleaseEntry| {
            let order = b.is_revoking.cmp(&a.is_revoking);
            order.then_with(|| compare_versions(&b.dir[at..], &a.dir[at..]))
        };
        let (from, to) = (range.start.min(self.len()), range.end.min(self.len()));
        if from >= to {
            return Vec::new();
        }
        if from > 0 {
            self.entries.select_nth_unstable_by(from, descending);
            self.entries.drain(..from);
        }
        if to - from < self.entries.len() {
            self.entries.select_nth_unstable_by(to - from, descending);
            self.entries.truncate(to - from);
        }
        self.entries.sort_by(descending);
        self.entries
    }
}

impl ReleaseCounts {
    pub fn total(&self) -> usize {
        self.collecting + self.complete + self.revoked
    }
}

/// The state of an index, from the ending that its signatures file adds to the index's name.
fn state_told_by(suffix: &str) -> Option<ReleaseState> {
    let ending = suffix.strip_prefix(wire::SIGNATURES_SUFFIX)?;
    match ending {
        "" => Some(ReleaseState::Complete),
        wire::PENDING_SUFFIX => Some(ReleaseState::Collecting),
        wire::REVOKED_SUFFIX => Some(ReleaseState::Revoked),
        _ => None,
    }
}
