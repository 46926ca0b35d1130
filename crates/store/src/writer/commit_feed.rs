//! The reader's end of the feed, and all that it reads from the store.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gix::{ObjectId, objs::Kind};

use crate::journal::{JournalEntry, export::JournalExport};
use crate::{error::StoreError, snapshot::Head, writer::StoreState, writer::feed::FeedNews};

/// The feed of new commits. There is one at a time; it ends with this value.
#[derive(Debug)]
pub struct CommitFeed {
    store: Arc<StoreState>,
}

/// Makes a reader that waits look up.
#[derive(Debug, Clone)]
pub struct FeedWaker {
    store: Arc<StoreState>,
}

impl CommitFeed {
    pub(crate) fn new(store: Arc<StoreState>) -> Self {
        store.feed.begin(true);
        Self { store }
    }

    /// Waits for commits, for this long. The first answer is that the reader is behind.
    pub fn next(&self, limit: Duration) -> FeedNews {
        self.store.feed.next(limit)
    }

    /// Resumes the feed after its reader has read the journal up to `newest`. If that is still the newest commit,
    /// commits come from the feed again; else there is more to read.
    pub fn resume(&self, newest: Option<ObjectId>) -> bool {
        self.store.feed.resume(|| self.store.published.load().tip() == newest)
    }

    /// The newest published state.
    pub fn head(&self) -> Arc<Head> {
        self.store.published.load_full()
    }

    /// Reads the journal, as [`crate::Store::journal`] does.
    pub fn journal(&self, after: Option<ObjectId>) -> Result<Option<JournalExport>, StoreError> {
        self.store.journal(after)
    }

    /// The object of a commit, as in [`PublishedCommit::object`]. Reads from disk.
    pub fn commit_object(&self, id: &ObjectId) -> Result<Bytes, StoreError> {
        Ok(self.store.published.load().objects.read(id, Kind::Commit)?.into())
    }

    /// A commit with its content, as the repository has it. Reads from disk.
    pub fn read_entry(&self, id: &ObjectId) -> Result<JournalEntry, StoreError> {
        let objects = &self.store.published.load().objects;
        let parent = objects.commit(*id)?.parents.first().copied();
        let export = JournalExport::begin(objects, &self.store.milestones, parent, *id)?;
        let entry = export.map(|mut export| export.next_entry()).transpose()?.flatten();
        entry.ok_or_else(|| StoreError::corrupt(id, "it does not continue the commit before it"))
    }

    pub fn waker(&self) -> FeedWaker {
        FeedWaker { store: Arc::clone(&self.store) }
    }
}

impl Drop for CommitFeed {
    fn drop(&mut self) {
        self.store.feed.begin(false);
    }
}

impl FeedWaker {
    pub fn wake(&self) {
        self.store.feed.wake();
    }
}
