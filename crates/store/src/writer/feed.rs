//! Commits with their content as soon as they are published, for one who follows closely. The writer never waits for
//! the reader: what does not fit is forgotten, and the reader reads it from the repository.

use std::sync::{Condvar, Mutex, PoisonError};
use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use countersign_core::{rules::snapshot::Change, values::path::RepoPath};
use gix::ObjectId;

use crate::{machine::clock::lock, snapshot::Head};

/// What waits for the reader, at most: about four full batches, each of some kilobytes.
const MAX_COMMITS: usize = 1_024;
const MAX_BYTES: usize = 32 << 20;

/// A commit that has just been published.
#[derive(Debug, Clone)]
pub struct PublishedCommit {
    pub id: ObjectId,
    /// The commit before; `None` for the first commit.
    pub parent: Option<ObjectId>,
    /// The commit object, without the header that Git puts before it.
    pub object: Bytes,
    /// The files that differ from the commit before. Its message stands in the object.
    pub change: Change,
}

#[derive(Debug)]
pub enum FeedNews {
    /// Each continues the one before, and the first of them the commit that the reader had. None if it was woken, or
    /// had waited long enough.
    Commits(Vec<PublishedCommit>),
    /// Some commits are missing: the reader reads the journal, then calls `CommitFeed::resume`.
    Behind,
}

/// The writer's end.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    state: Mutex<FeedState>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct FeedState {
    is_followed: bool,
    is_behind: bool,
    is_woken: bool,
    waiting: VecDeque<PublishedCommit>,
    bytes: usize,
}

impl Feed {
    /// Begins for a new reader, which is behind, or ends when one has gone.
    pub(crate) fn begin(&self, is_followed: bool) {
        let mut state = lock(&self.state);
        state.is_followed = is_followed;
        state.fall_behind();
    }

    pub(crate) fn wake(&self) {
        lock(&self.state).is_woken = true;
        self.news.notify_all();
    }

    /// Waits for commits, for this long.
    pub(crate) fn next(&self, limit: Duration) -> FeedNews {
        let is_quiet =
            |state: &mut FeedState| !state.is_behind && !state.is_woken && state.waiting.is_empty();
        let waited = self.news.wait_timeout_while(lock(&self.state), limit, is_quiet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_woken = false;
        if state.is_behind {
            return FeedNews::Behind;
        }
        state.bytes = 0;
        FeedNews::Commits(std::mem::take(&mut state.waiting).into())
    }

    /// Commits are handed over again if the reader is up to date.
    pub(crate) fn resume(&self, is_up_to_date: impl FnOnce() -> bool) -> bool {
        let mut state = lock(&self.state);
        // The writer publishes under this lock, so no commit comes in between.
        let is_up_to_date = is_up_to_date();
        state.is_behind &= !is_up_to_date;
        is_up_to_date
    }

    pub(crate) fn is_followed(&self) -> bool {
        lock(&self.state).is_followed
    }

    /// Runs `publish`, and hands the commits that it publishes to the reader. `commits` is `None` if they are not at
    /// hand.
    pub(crate) fn publish(&self, commits: Option<Vec<PublishedCommit>>, publish: impl FnOnce()) {
        let mut state = lock(&self.state);
        publish();
        if !state.is_followed {
            return;
        }
        match commits {
            Some(commits) => state.push(commits),
            None => state.fall_behind(),
        }
        drop(state);
        self.news.notify_all();
    }
}

impl FeedState {
    fn push(&mut self, commits: Vec<PublishedCommit>) {
        if self.is_behind {
            return;
        }
        self.bytes += commits.iter().map(PublishedCommit::bytes).sum::<usize>();
        self.waiting.extend(commits);
        if self.waiting.len() > MAX_COMMITS || self.bytes > MAX_BYTES {
            self.fall_behind();
        }
    }

    fn fall_behind(&mut self) {
        self.is_behind = true;
        self.waiting = VecDeque::new();
        self.bytes = 0;
    }
}

impl PublishedCommit {
    /// The commit of a `change` as it was asked for. Files that it leaves as they are do not belong to the commit: no
    /// clone sees them.
    pub(crate) fn new(id: ObjectId, object: Bytes, before: &Head, after: &Head, change: &Change) -> Self {
        let is_touched = |path: &RepoPath| {
            before.file(path).map(|found| found.id) != after.file(path).map(|found| found.id)
        };
        let touched = change.files.iter().filter(|(path, _)| is_touched(path));
        let files = touched.map(|(path, content)| (path.clone(), content.clone())).collect();
        Self { id, parent: before.tip(), object, change: Change { files, message: String::new() } }
    }

    fn bytes(&self) -> usize {
        let contents = self.change.files.values().flatten();
        self.object.len() + contents.map(|content| content.len()).sum::<usize>()
    }
}
