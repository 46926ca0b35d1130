//! A bare repository that is made again from a journal, and checked while it is made: each commit must get the id that
//! it claims, and the rules must give it. A commit that they do not give is never stored (D206).

use std::{path::Path, sync::Arc};

use gix::{ObjectId, hash::Kind as HashKind};

use crate::audit::{Backwards, replay::Replay, replay::SpeaksFor, replay::Violation};
use crate::journal::follow::{FollowError, check_rules, prepare_again};
use crate::journal::{JournalEntry, milestones};
use crate::repository::{OpenError, Repository, batch::Batch};
use crate::{error::StoreError, snapshot::Head};

/// About how much a pack holds. Many small ones would make reading slow.
const MAX_PACK_BYTES: usize = 32 << 20;
/// How much can be stored of commits before the one that the check begins after, if the rules do not give them.
const MAX_EXCUSED_BYTES: usize = 64 << 20;
/// What a commit or a file takes beside its content, about.
const OVERHEAD: usize = 512;

#[derive(Debug)]
pub struct JournalCopy {
    repository: Repository,
    /// The newest state, with what is not on disk yet.
    head: Head,
    batch: Batch,
    replay: Replay,
    begin: CheckBegin,
    /// How much was stored that the rules do not give.
    excused_bytes: usize,
    checked: usize,
    backwards: Backwards,
}

/// The point from which on findings count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckBegin {
    /// Findings count from the next commit on.
    Now,
    /// Findings count after this commit, which is still to come.
    After(ObjectId),
}

/// What became of a commit.
#[derive(Debug)]
#[must_use]
pub enum Copied {
    /// The commit is in the copy.
    Added,
    /// The rules do not give it, for these reasons. It is not in the copy, and so no later one can be.
    Illegal { commit: ObjectId, violations: Vec<Violation> },
}

impl JournalCopy {
    /// Opens the copy at `dir`, or makes one where there is nothing.
    pub fn open(dir: &Path, speaks_for: SpeaksFor) -> Result<Self, OpenError> {
        let repository = Repository::open(dir)?;
        let objects = Arc::clone(&repository.objects);
        let replay = milestones::read_replay(&objects, repository.tip, speaks_for)?;
        let newest = repository.tip.map(|tip| objects.commit(tip)).transpose()?;
        let backwards = newest.map(|newest| Backwards::after(newest.time)).unwrap_or_default();
        let commit = repository.tip.unwrap_or(ObjectId::null(HashKind::Sha1));
        let head = Head::of(commit, repository.root.clone(), None, objects);
        let (batch, begin) = (Batch::default(), CheckBegin::Now);
        Ok(Self { repository, head, batch, replay, begin, excused_bytes: 0, checked: 0, backwards })
    }

    /// Lets findings count from there on only.
    pub fn begin_check(&mut self, begin: CheckBegin) {
        self.begin = begin;
    }

    /// The point from which on findings count; after that commit was added, it is [`CheckBegin::Now`].
    pub fn begin(&self) -> CheckBegin {
        self.begin
    }

    pub fn newest(&self) -> Option<ObjectId> {
        self.head.tip()
    }

    /// How many commits were checked, and added or refused.
    pub fn checked(&self) -> usize {
        self.checked
    }

    /// What a person should know of the commits that were checked, and is no finding.
    pub fn note(&self) -> Option<String> {
        self.backwards.note()
    }

    /// Makes the next commit, if the rules give it. It is on disk after [`JournalCopy::publish`] at the latest.
    pub fn add(&mut self, entry: &JournalEntry) -> Result<Copied, FollowError> {
        let new = prepare_again(&self.batch, &self.head, entry)?;
        let violations = check_rules(&self.head, &new, entry, &mut self.replay).err().unwrap_or_default();
        if self.begin == CheckBegin::Now {
            self.checked += 1;
            self.backwards.note_time(entry.id, entry.time);
        }
        if !violations.is_empty() && !self.excuse(entry) {
            return Ok(Copied::Illegal { commit: entry.id, violations });
        }
        let root = Arc::clone(&new.root);
        self.batch.add_commit(&self.head.objects, new);
        let touched: Vec<_> = entry.change.files.keys().cloned().collect();
        self.head = self.head.next(entry.id, root, &touched);
        if self.begin == CheckBegin::After(entry.id) {
            self.begin = CheckBegin::Now;
        }
        if self.batch.bytes > MAX_PACK_BYTES {
            self.publish()?;
        }
        Ok(Copied::Added)
    }

    /// Whether a commit can be stored that the rules do not give. A journal that never comes to the commit that the
    /// check begins after must still come to an end.
    fn excuse(&mut self, entry: &JournalEntry) -> bool {
        self.excused_bytes += entry.bytes(OVERHEAD) + OVERHEAD;
        self.begin != CheckBegin::Now && self.excused_bytes <= MAX_EXCUSED_BYTES
    }

    /// Puts on disk what was added.
    pub fn publish(&mut self) -> Result<(), StoreError> {
        if !self.batch.objects.is_empty() {
            self.repository.publish(&self.batch, self.head.commit)?;
            self.batch = Batch::default();
        }
        Ok(())
    }
}
