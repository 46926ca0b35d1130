//! The newest commits in memory, for those who watch what happens, and older ones as they are read back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use countersign_api::event::{Event, EventBody, events_of};
use countersign_core::values::time::Timestamp;
use gix::ObjectId;
use tokio::sync::watch;

use crate::journal::milestones::{Milestones, Stretch};
use crate::machine::clock::{lock, read, write};
use crate::{error::StoreError, objects::Objects};

/// How many commits are kept, and so how far back a watcher can go on from.
pub const KEPT: usize = 10_000;

/// A commit as those see it who watch.
#[derive(Debug)]
pub struct RecentCommit {
    pub id: ObjectId,
    /// The time of the commit.
    pub time: Timestamp,
    message: String,
    events: OnceLock<Vec<Event>>,
    bodies: OnceLock<Vec<String>>,
}

/// The end of the recent commits.
#[derive(Debug, Clone, Copy)]
pub struct NewestCommit {
    /// The position behind the newest commit.
    pub end: i64,
    pub commit: Option<ObjectId>,
}

/// Commits by position: those made since the start count from 0, those before it have negative positions.
#[derive(Debug)]
pub struct RecentCommits {
    kept: RwLock<Kept>,
    /// The position behind the newest commit.
    end: watch::Sender<i64>,
    objects: Arc<Objects>,
    milestones: Arc<Milestones>,
    /// The newest commit before the start, if there was one.
    earlier: Option<ObjectId>,
    /// Whether what came before the start was read back.
    is_filled: Mutex<bool>,
}

#[derive(Debug)]
struct Kept {
    commits: VecDeque<Arc<RecentCommit>>,
    /// The position of the oldest of them.
    begin: i64,
    /// The newest commit there is, kept or not.
    newest: Option<ObjectId>,
}

impl RecentCommit {
    pub(crate) fn new(id: ObjectId, time: Timestamp, message: String) -> Self {
        Self { id, time, message, events: OnceLock::new(), bodies: OnceLock::new() }
    }

    /// The events of the commit. Found out when first asked, which is not the writer's time.
    pub fn events(&self) -> &[Event] {
        self.events.get_or_init(|| events_of(&self.message))
    }

    /// The events of the commit as JSON, written once for all listeners.
    pub fn bodies(&self) -> &[String] {
        self.bodies.get_or_init(|| {
            let write = |event| EventBody::new(event, self.time, self.id.to_string()).to_json();
            self.events().iter().map(write).collect()
        })
    }
}

impl RecentCommits {
    pub(crate) fn new(objects: Arc<Objects>, milestones: Arc<Milestones>, tip: Option<ObjectId>) -> Self {
        let kept = RwLock::new(Kept { commits: VecDeque::new(), begin: 0, newest: tip });
        let (end, is_filled) = (watch::Sender::new(0), Mutex::new(false));
        Self { kept, end, objects, milestones, earlier: tip, is_filled }
    }

    /// Tells the position behind the newest commit, again whenever there are new ones.
    pub fn subscribe(&self) -> watch::Receiver<i64> {
        self.end.subscribe()
    }

    /// The position behind the newest commit.
    pub fn end(&self) -> i64 {
        *self.end.borrow()
    }

    /// The newest commit and the position behind it, both of the same instant.
    pub fn newest(&self) -> NewestCommit {
        let kept = read(&self.kept);
        NewestCommit { end: kept.begin + kept.commits.len() as i64, commit: kept.newest }
    }

    /// The position of a commit, if it is one of those that are kept.
    pub fn position_of(&self, id: &ObjectId) -> Option<i64> {
        self.fill();
        let kept = read(&self.kept);
        let at = kept.commits.iter().rposition(|commit| commit.id == *id)?;
        Some(kept.begin + at as i64)
    }

    /// Up to `count` commits from this position on, oldest first; `None` where they are no longer kept.
    pub fn from(&self, position: i64, count: usize) -> Option<Vec<Arc<RecentCommit>>> {
        if position < 0 {
            self.fill();
        }
        let kept = read(&self.kept);
        let skipped = usize::try_from(position - kept.begin).ok()?;
        Some(kept.commits.iter().skip(skipped).take(count).cloned().collect())
    }

    /// Up to `count` kept commits before this position that `is_wanted`, newest first, each with its position.
    pub fn before(
        &self,
        position: i64,
        count: usize,
        is_wanted: impl Fn(&RecentCommit) -> bool,
    ) -> Vec<(i64, Arc<RecentCommit>)> {
        self.fill();
        // Looking at them takes longer than the writer should wait.
        let (begin, commits): (i64, Vec<_>) = {
            let kept = read(&self.kept);
            (kept.begin, kept.commits.iter().cloned().collect())
        };
        let numbered = commits.into_iter().enumerate().rev().map(|(at, commit)| (begin + at as i64, commit));
        numbered.filter(|(at, commit)| *at < position && is_wanted(commit)).take(count).collect()
    }

    /// Reads this commit and those before it from disk, newest first, however old.
    pub fn read_back(&self, from: ObjectId) -> impl Iterator<Item = Result<RecentCommit, StoreError>> {
        let read = self.objects.history(from);
        read.map(|read| read.map(|(id, commit)| RecentCommit::new(id, commit.time, commit.message)))
    }

    /// The commits after `after` up to `newest`, in parts to be read back; the oldest comes last. `None` if `after` is
    /// not in the history. Reads from disk.
    pub fn stretches(&self, after: ObjectId, newest: ObjectId) -> Result<Option<Vec<Stretch>>, StoreError> {
        self.milestones.stretches(Some(after), newest)
    }

    /// Commits that have just been published, oldest first.
    pub(crate) fn append(&self, commits: impl IntoIterator<Item = RecentCommit>) {
        let end = {
            let mut kept = write(&self.kept);
            for commit in commits {
                kept.newest = Some(commit.id);
                kept.commits.push_back(Arc::new(commit));
                if kept.commits.len() > KEPT {
                    kept.commits.pop_front();
                    kept.begin += 1;
                }
            }
            kept.begin + kept.commits.len() as i64
        };
        self.end.send_replace(end);
    }

    /// Appends what was published up to `tip` without our knowing it.
    pub(crate) fn catch_up(&self, tip: ObjectId) {
        let newest = read(&self.kept).newest;
        let mut missed = Vec::new();
        for commit in self.read_back(tip).take(KEPT) {
            match commit {
                Ok(commit) if Some(commit.id) == newest => break,
                Ok(commit) => missed.push(commit),
                Err(error) => {
                    tracing::error!(%error, "a commit is left out of the log of events");
                    return self.forget(tip);
                }
            }
        }
        missed.reverse();
        self.append(missed);
    }

    /// Keeps nothing of what was. A listener that goes on from there is told so, instead of being given commits with a
    /// gap.
    fn forget(&self, tip: ObjectId) {
        *lock(&self.is_filled) = true;
        let end = {
            let mut kept = write(&self.kept);
            kept.begin += kept.commits.len() as i64 + 1;
            kept.commits.clear();
            kept.newest = Some(tip);
            kept.begin
        };
        self.end.send_replace(end);
    }

    /// Reads back what came before the start, once. Not before the first question, so that a start does not wait for
    /// it.
    fn fill(&self) {
        let mut is_filled = lock(&self.is_filled);
        if *is_filled {
            return;
        }
        // The writer does not wait for this: it appends at the other end meanwhile. Where that leaves no room, what is
        // kept may no longer begin at the start either.
        let room = KEPT - read(&self.kept).commits.len();
        let earlier: Vec<_> =
            self.earlier.into_iter().flat_map(|tip| self.read_back(tip).take(room)).collect();
        let mut kept = write(&self.kept);
        for commit in earlier {
            match commit {
                Ok(_) if kept.commits.len() == KEPT => break,
                Ok(commit) => {
                    kept.commits.push_front(Arc::new(commit));
                    kept.begin -= 1;
                }
                Err(error) => {
                    tracing::error!(%error, "events from before this commit cannot be reported");
                    break;
                }
            }
        }
        *is_filled = true;
    }
}
