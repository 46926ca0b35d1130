//! A bare repository that is made again from a journal, so that it can be checked. The commits are made anew, and each
//! must get the id that it claims. Whether the rules give them, `audit` finds out.

use std::path::Path;

use gix::{ObjectId, hash::Kind as HashKind};

use crate::{
    error::StoreError,
    follow::{FollowError, prepare_again},
    journal::entry::JournalEntry,
    repository::{OpenError, Repository, batch::Batch},
    snapshot::head::Head,
};

/// A pack holds about so much. Many small ones would make reading slow.
const MAX_PACK_BYTES: usize = 32 << 20;

#[derive(Debug)]
pub struct JournalCopy {
    repository: Repository,
    /// With what is not on disk yet.
    head: Head,
    batch: Batch,
}

impl JournalCopy {
    /// Opens the copy at `dir`, or makes one where there is nothing.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let repository = Repository::open(dir)?;
        let commit = repository.tip.unwrap_or(ObjectId::null(HashKind::Sha1));
        let head = Head::of(commit, repository.root.clone(), None, repository.objects.clone());
        Ok(Self { repository, head, batch: Batch::default() })
    }

    pub fn newest(&self) -> Option<ObjectId> {
        Some(self.head.commit).filter(|commit| !commit.is_null())
    }

    /// Makes the next commit. It is on disk after [`JournalCopy::publish`] at the latest.
    pub fn add(&mut self, entry: &JournalEntry) -> Result<(), FollowError> {
        let new = prepare_again(&self.batch, &self.head, entry)?;
        let root = new.root.clone();
        self.batch.add_commit(&self.head.objects, new);
        let touched: Vec<_> = entry.change.files.keys().cloned().collect();
        self.head = self.head.next(entry.id, root, &touched);
        if self.batch.bytes > MAX_PACK_BYTES {
            self.publish()?;
        }
        Ok(())
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
