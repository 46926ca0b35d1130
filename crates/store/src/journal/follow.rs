//! Following another machine: making a commit of its journal again, and why one is not repeated.

use std::{collections::BTreeSet, sync::Arc};

use countersign_core::documents::{history::EntryFacts, layout, signatures::SignatureSet};
use countersign_core::rules::snapshot::{Change, ReadError, Snapshot, StoredSigners};
use countersign_core::values::{bounds::NEW_DIRECTORIES, path::RepoPath, time::Timestamp};
use gix::ObjectId;
use thiserror::Error;

use crate::audit::replay::{CommitStep, Replay, Violation};
use crate::repository::batch::{Batch, NewCommit};
use crate::snapshot::{Head, tree::Dir};
use crate::{error::StoreError, journal::JournalEntry, objects::delta::common_prefix};

#[derive(Debug, Clone, Error)]
pub enum FollowError {
    #[error("the commit {id} continues {}, and the newest one here is {}", name(parent.as_ref()), name(newest.as_ref()))]
    Elsewhere { id: ObjectId, parent: Option<ObjectId>, newest: Option<ObjectId> },
    #[error("the commit {claimed} does not have the content that came with it: that makes the commit {made}")]
    OtherId { claimed: ObjectId, made: ObjectId },
    #[error("the commit {id} breaks the rules: {reason}")]
    Illegal { id: ObjectId, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FollowError {
    /// Whether the commit is what it says and continues the newest one, and the rules do not give it: by what it holds,
    /// and not by what this machine can do.
    pub(crate) fn breaks_rules(&self) -> bool {
        match self {
            Self::Illegal { .. } => true,
            Self::Store(StoreError::Conflict { .. } | StoreError::TooLarge { .. }) => true,
            Self::Store(_) | Self::Elsewhere { .. } | Self::OtherId { .. } => false,
        }
    }
}

/// The commit of an entry, made again on top of `head`: it must continue that one, and have the id that it claims.
///
/// Directories in memory are many times as large as the lines of the journal that name them. So they are counted first
/// (D205).
pub(crate) fn prepare_again<'a>(
    batch: &Batch,
    head: &Head,
    entry: &'a JournalEntry,
) -> Result<NewCommit<'a>, FollowError> {
    let JournalEntry { id, parent, author, time, change } = entry;
    if *parent != head.tip() {
        return Err(FollowError::Elsewhere { id: *id, parent: *parent, newest: head.tip() });
    }
    if adds_too_many_directories(&head.root, change) {
        let reason = format!("it adds more than {NEW_DIRECTORIES} directories");
        return Err(FollowError::Illegal { id: *id, reason });
    }
    let new = batch.prepare(head, change, &author.at(*time))?;
    if new.tip != *id {
        return Err(FollowError::OtherId { claimed: *id, made: new.tip });
    }
    Ok(new)
}

/// Whether the rules give a commit that was prepared on top of `head`. It is in no batch yet, so that nothing of a
/// commit which they do not give has to be taken back.
pub(crate) fn check_rules(
    head: &Head,
    new: &NewCommit<'_>,
    entry: &JournalEntry,
    replay: &mut Replay,
) -> Result<(), Vec<Violation>> {
    let JournalEntry { parent, time, change, .. } = entry;
    let is_touched = |path: &&RepoPath| head.file(path).map(|found| found.id) != new.root.file(path);
    let touched: BTreeSet<RepoPath> = change.files.keys().filter(is_touched).cloned().collect();
    let message = change.recorded_message();
    let step = CommitStep { message: &message, time: *time, touched: &touched, is_first: parent.is_none() };
    let (before, after) = (Prepared { head, change: None }, Prepared { head, change: Some(change) });
    replay.check(&before, &after, &step).map(drop)
}

/// The first violation in one line.
pub(crate) fn describe(violations: &[Violation]) -> String {
    let Some(first) = violations.first() else { return String::new() };
    let file = first.files.first().map(|file| format!("{file}: ")).unwrap_or_default();
    format!("{file}{}", first.fault)
}

/// Stops counting at the first that is too many.
fn adds_too_many_directories(root: &Dir, change: &Change) -> bool {
    let (mut added, mut last) = (0, "");
    let written = change.files.iter().filter(|(_, content)| content.is_some()).map(|(path, _)| path.as_str());
    for path in written {
        // All files below a directory are adjacent, because the paths are sorted.
        let counted = common_prefix(last.as_bytes(), path.as_bytes());
        let (mut dir, mut begin) = (Some(root), 0);
        for (end, _) in path.match_indices('/') {
            dir = dir.and_then(|dir| dir.subdir(&path[begin..end])).map(|dir| &**dir);
            added += usize::from(dir.is_none() && end >= counted);
            begin = end + 1;
        }
        if added > NEW_DIRECTORIES {
            return true;
        }
        last = path;
    }
    false
}

/// The files of a commit, or those that a change on top of it leaves. What is indexed is always as of the commit: a
/// replay asks for it before the change only.
struct Prepared<'a> {
    head: &'a Head,
    change: Option<&'a Change>,
}

impl Prepared<'_> {
    /// What the change says about the file, if it says something.
    fn changed(&self, path: &RepoPath) -> Option<&Option<Arc<[u8]>>> {
        self.change?.files.get(path)
    }
}

impl Snapshot for Prepared<'_> {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        self.changed(path).map_or_else(|| self.head.read(path), |content| Ok(content.clone()))
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.changed(path).map_or_else(|| self.head.contains(path), Option::is_some)
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        match self.changed(path) {
            Some(Some(bytes)) => StoredSigners::parse(path, Arc::clone(bytes)).map(Some),
            Some(None) => Ok(None),
            None => self.head.read_signers(path),
        }
    }

    fn read_signatures(&self, path: &RepoPath) -> Result<Option<SignatureSet>, ReadError> {
        match self.changed(path) {
            Some(_) => self.read_document(path, SignatureSet::parse),
            None => self.head.read_signatures(path),
        }
    }

    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        match self.changed(path) {
            Some(_) => self.read_document(path, EntryFacts::parse),
            None => self.head.read_entry_facts(path),
        }
    }

    fn governing_project(&self, path: &RepoPath) -> Option<RepoPath> {
        match self.change {
            Some(_) => path.self_and_ancestors().find(|dir| self.contains(&layout::active_signers(dir))),
            None => self.head.governing_project(path),
        }
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        self.head.files_below(dir)
    }

    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        self.head.projects_overlapping(id)
    }

    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        self.head.pending_registrations(dir)
    }

    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        self.head.collecting_indexes(project)
    }
}

fn name(parent: Option<&ObjectId>) -> String {
    parent.map_or_else(|| "none".to_owned(), ToString::to_string)
}
