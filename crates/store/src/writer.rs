//! The one writer. It takes whatever changes wait, makes a commit of each, and publishes them together: many callers
//! share one round of fsync, and each is answered only after it.

pub mod commit_feed;
pub mod feed;
pub mod fold;
pub(crate) mod jobs;
mod repeating;
mod sharing;
pub mod stats;
mod work;

use std::{collections::HashSet, mem, sync::Arc, time::Duration, time::Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use countersign_core::rules::snapshot::Change;
use countersign_core::values::bounds::{SHARED_BATCH_BYTES, SHARED_CHANGE_BYTES};
use countersign_core::values::{path::RepoPath, time::Timestamp};
use gix::{ObjectId, hash::Kind as HashKind};

use crate::audit::replay::{Replay, SpeaksFor};
use crate::budget::{Charge, StorageBudget};
use crate::journal::recent_commits::{RecentCommit, RecentCommits};
use crate::journal::{JournalEntry, JournalWriter};
use crate::journal::{export::JournalExport, milestones::Milestones};
use crate::objects::commit::Author;
use crate::repository::Repository;
use crate::repository::batch::{Batch, NewCommit};
use crate::sequence::{OrderPosition, Sequencer};
use crate::writer::{feed::Feed, feed::PublishedCommit, fold::Folder, jobs::need_of, stats::StoreStats};
use crate::{error::StoreError, machine::clock::Clock, snapshot::Head, snapshot::path_table::PathTable};

const MAX_CHANGES: usize = 256;
/// How far the history can be ahead of the clock, after the clock was set back. Followers accept a request that is this
/// much older than its commit (`audit::replay`).
const MAX_HISTORY_LEAD: Duration = Duration::from_secs(60 * 60);
/// Trees of large directories add up; beyond this, the rest waits for the next batch.
const MAX_BATCH_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) repository: Repository,
    pub(crate) shared: Arc<StoreState>,
    pub(crate) author: Author,
    pub(crate) clock: Clock,
    pub(crate) folder: Folder,
    pub(crate) repeating: Repeating,
    /// The order that this node shares with others; `None` for a server on its own.
    pub(crate) sharing: Option<Sharing>,
}

/// What the writer needs for commits that other machines made.
#[derive(Debug)]
pub(crate) struct Repeating {
    pub(crate) speaks_for: SpeaksFor,
    /// The replay, which remembers the requests of the last day; `None` before they are read back.
    pub(crate) replay: Option<Replay>,
    /// Commits that were found on the branch after a write that was reported lost. The other machine may not have been
    /// asked anew since then, and then it sends them again (D155).
    pub(crate) recovered: HashSet<ObjectId>,
    /// Whether `replay` does not know all requests of the changes that are being tried.
    pub(crate) is_unsure: bool,
}

impl Repeating {
    pub(crate) fn new(speaks_for: SpeaksFor) -> Self {
        Self { speaks_for, replay: None, recovered: HashSet::new(), is_unsure: false }
    }

    /// The changes that were tried are made.
    pub(crate) fn keep_tried(&mut self) {
        if mem::take(&mut self.is_unsure) {
            self.replay = None;
        } else if let Some(replay) = &mut self.replay {
            replay.nonces.end_trial();
        }
    }

    /// The changes that were tried come to nothing, all but those of so many requests.
    pub(crate) fn take_back(&mut self, kept: usize) {
        if let Some(replay) = &mut self.replay {
            replay.nonces.take_back(kept);
        }
    }
}

/// Gives the first change of a repository, at the time of its commit.
pub(crate) type FirstChange = fn(Timestamp) -> Change;

/// What the writer of a node among others needs.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(crate) sequencer: Box<dyn Sequencer>,
    /// The first commit, if no node has made it.
    pub(crate) initial: FirstChange,
    /// Batches that this node has passed over since its newest commit, oldest first.
    pub(crate) passed: Vec<OrderPosition>,
    /// Batches that other nodes pass over, and that are not in this node's history.
    pub(crate) rightly_passed: HashSet<ObjectId>,
}

/// What the writer shares with those who ask.
#[derive(Debug)]
pub(crate) struct StoreState {
    pub(crate) published: ArcSwap<Head>,
    /// The time of the newest commit. The next one is not made before it.
    pub(crate) newest: ArcSwap<Timestamp>,
    pub(crate) stats: StoreStats,
    pub(crate) recent_commits: Arc<RecentCommits>,
    pub(crate) budget: Option<StorageBudget>,
    /// Why this node does not follow the shared order any more.
    pub(crate) halted: ArcSwapOption<String>,
    pub(crate) milestones: Arc<Milestones>,
    pub(crate) feed: Feed,
}

impl StoreState {
    /// Reads the journal, as [`crate::Store::journal`] does.
    pub(crate) fn journal(&self, after: Option<ObjectId>) -> Result<Option<JournalExport>, StoreError> {
        let head = self.published.load_full();
        JournalExport::begin(&head.objects, &self.milestones, after, head.commit)
    }
}

/// Changes that were decided one on top of the other, and are not published yet.
#[derive(Debug)]
pub(crate) struct Draft {
    head: Head,
    /// The time of the newest change, also of those before the draft.
    newest: Timestamp,
    batch: Batch,
    commits: Vec<RecentCommit>,
    /// The commits with their content, if someone follows.
    fed: Option<Vec<PublishedCommit>>,
    stored_bytes: u64,
    /// Charges against the budget, given back if the draft comes to nothing.
    charges: Vec<Charge>,
    /// The commits as journal entries for other nodes, if there are any.
    entries: Vec<JournalEntry>,
    writer: JournalWriter,
    body: Vec<u8>,
}

/// A commit as other nodes are told of it.
#[derive(Debug)]
struct SharedEntry {
    entry: JournalEntry,
    body: Vec<u8>,
    /// The writer that has written the entry.
    writer: JournalWriter,
}

impl Writer {
    /// The very first commit of a server on its own, before any other can be asked for.
    pub(crate) fn commit_initial(&mut self, initial: FirstChange) -> Result<(), StoreError> {
        let mut draft = self.draft();
        self.extend_at_once(&mut draft, initial)?;
        self.publish(&mut draft)
    }

    pub(crate) fn draft(&self) -> Draft {
        let head = Head::clone(&self.shared.published.load());
        Draft {
            head,
            newest: **self.shared.newest.load(),
            batch: Batch::default(),
            commits: Vec::new(),
            fed: self.shared.feed.is_followed().then(Vec::new),
            stored_bytes: 0,
            charges: Vec::new(),
            entries: Vec::new(),
            writer: JournalWriter::default(),
            body: Vec::new(),
        }
    }

    /// Discards a draft: what it staged will never be published.
    pub(crate) fn discard(&mut self, draft: Draft) {
        drop(draft);
        self.repeating.take_back(0);
        self.repository.objects.unstage();
    }

    /// The one time of the next change: its decision and its commit have it (D191). After a clock was set back, the
    /// history stands still until the clock is there again. A clock that is too far behind can only be wrong.
    fn now(&self, draft: &Draft) -> Result<Timestamp, StoreError> {
        let (clock, newest) = (self.clock.now(), draft.newest);
        check_history_lead(newest, clock)?;
        Ok(clock.max(newest))
    }

    fn extend_at_once(&mut self, draft: &mut Draft, change: FirstChange) -> Result<(), StoreError> {
        let now = self.now(draft)?;
        self.extend(draft, &change(now), now)
    }

    /// Adds one more commit to `draft`. On an error it is as it was, but for objects that nothing refers to. A node
    /// makes no commit that the others would refuse (D196).
    fn extend(&mut self, draft: &mut Draft, change: &Change, now: Timestamp) -> Result<(), StoreError> {
        let new = draft.batch.prepare(&draft.head, change, &self.author.at(now))?;
        let entry = self.sharing.as_ref().map(|_| JournalEntry {
            id: new.tip,
            parent: draft.head.tip(),
            author: self.author.clone(),
            time: now.to_whole_seconds(),
            change: Change { message: change.recorded_message(), ..change.clone() },
        });
        let shared = entry.map(|entry| SharedEntry::encode(entry, draft)).transpose()?;
        let charge = self.charge(&draft.head, change, new.stored_bytes())?;
        if let Some(shared) = &shared {
            self.check_own(&draft.head, &new, &shared.entry)?;
        }
        draft.charges.extend(charge);
        draft.add(new, change, now, shared);
        Ok(())
    }

    /// Refuses a change that is more than may be stored. The first commit of a repository is not about a project.
    fn charge(&self, head: &Head, change: &Change, bytes: u64) -> Result<Option<Charge>, StoreError> {
        let Some(budget) = self.shared.budget.as_ref().filter(|_| !head.commit.is_null()) else {
            return Ok(None);
        };
        let Some(need) = need_of(head, change, bytes) else { return Ok(None) };
        Ok(Some(budget.charge(&need, Instant::now())?))
    }

    /// Publishes a draft. On a node, what is published is in the database, and need not be on disk yet.
    pub(crate) fn publish(&mut self, draft: &mut Draft) -> Result<(), StoreError> {
        if self.sharing.is_some() {
            self.repository.hold(mem::take(&mut draft.batch), draft.head.commit);
        } else {
            let made = self.repository.publish(&draft.batch, draft.head.commit);
            made.inspect_err(|error| self.shared.stats.note_failed(error))?;
        }
        let StoreState { published, newest, stats, recent_commits, feed, .. } = &*self.shared;
        feed.publish(draft.fed.take(), || published.store(Arc::new(draft.head.clone())));
        newest.store(Arc::new(draft.newest));
        stats.note_published(draft.commits.len(), draft.stored_bytes);
        draft.charges.drain(..).for_each(Charge::keep);
        recent_commits.append(draft.commits.drain(..));
        self.folder.wake();
        self.write_held_if(self.is_write_due());
        Ok(())
    }

    /// A failure is no one's: the database has everything, and it is tried again.
    pub(crate) fn write_held_if(&mut self, is_time: bool) {
        if is_time && let Err(error) = self.write_held() {
            self.shared.stats.note_failed(&error);
            tracing::error!(%error, source = std::error::Error::source(&error), "commits are not on disk yet");
        }
    }

    fn is_write_due(&self) -> bool {
        self.repository.write_held_at().is_some_and(|at| at <= self.clock.steady())
    }

    /// Puts what a node holds on disk.
    fn write_held(&mut self) -> Result<(), StoreError> {
        self.recover()?;
        self.repository.write_held()?;
        self.folder.wake();
        Ok(())
    }

    /// Goes on from what is on disk after a failed publish; nothing is written before that succeeds.
    fn recover(&mut self) -> Result<(), StoreError> {
        let unmoved = self.repository.settle()?;
        if !unmoved {
            let before = self.shared.published.load().commit;
            let head = Arc::new(load_head(&self.repository));
            self.shared.feed.publish(None, || self.shared.published.store(Arc::clone(&head)));
            self.shared.newest.store(Arc::new(newest_time(&self.repository)?));
            self.shared.recent_commits.catch_up(head.commit);
            let found =
                self.shared.recent_commits.read_back(head.commit).map_while(|commit| Some(commit.ok()?.id));
            // A write has no more.
            self.repeating.recovered = found.take_while(|id| *id != before).take(MAX_CHANGES).collect();
        }
        Ok(())
    }
}

impl Draft {
    /// A commit that was prepared on top of the others, with its entry for other nodes. A panic adds neither: what can
    /// panic comes first.
    fn add(&mut self, new: NewCommit<'_>, change: &Change, time: Timestamp, shared: Option<SharedEntry>) {
        let (root, commit, stored_bytes) = (Arc::clone(&new.root), new.tip, new.stored_bytes());
        let object = new.object();
        self.batch.add_commit(&self.head.objects, new);
        let touched: Vec<RepoPath> = change.files.keys().cloned().collect();
        let next = self.head.next(commit, root, &touched);
        let fed = self.fed.is_some().then(|| PublishedCommit::new(commit, object, &self.head, &next, change));
        let recent = RecentCommit::new(commit, time.to_whole_seconds(), change.recorded_message());
        if let Some(kept) = &mut self.fed {
            kept.extend(fed);
        }
        if let Some(SharedEntry { entry, mut body, writer }) = shared {
            self.body.append(&mut body);
            self.entries.push(entry);
            self.writer = writer;
        }
        self.commits.push(recent);
        self.head = next;
        self.newest = self.newest.max(time);
        self.stored_bytes += stored_bytes;
    }
}

impl SharedEntry {
    /// A change that does not fit a batch is refused by itself: offered, it would stop all that come with it and after
    /// it.
    fn encode(entry: JournalEntry, draft: &Draft) -> Result<Self, StoreError> {
        let (mut writer, mut body) = (draft.writer.clone(), Vec::new());
        writer.write(&entry, &mut body);
        if body.len() > SHARED_CHANGE_BYTES {
            return Err(StoreError::TooLargeToShare { bytes: body.len() });
        }
        // Changes that are decided again, on what another node did, can have become larger.
        if draft.body.len() + body.len() > SHARED_BATCH_BYTES {
            return Err(StoreError::Busy);
        }
        Ok(Self { entry, body, writer })
    }
}

/// Whether a clock can be right that shows this, though the newest commit was made at `newest`.
pub(crate) fn check_history_lead(newest: Timestamp, clock: Timestamp) -> Result<(), StoreError> {
    let is_plausible = newest.ahead_of(clock).is_none_or(|lead| lead <= MAX_HISTORY_LEAD);
    let behind = || StoreError::ClockBehind { clock: clock.to_whole_seconds(), newest };
    if is_plausible { Ok(()) } else { Err(behind()) }
}

/// The time of the newest commit of the repository.
pub(crate) fn newest_time(repository: &Repository) -> Result<Timestamp, StoreError> {
    let Some(tip) = repository.tip else {
        return Ok(Timestamp::from_unix_seconds(0).expect("1970 is a year"));
    };
    Ok(repository.objects.commit(tip)?.time)
}

/// The head as the repository has it, with an index built from its files.
pub(crate) fn load_head(repository: &Repository) -> Head {
    let (root, objects) = (Arc::clone(&repository.root), Arc::clone(&repository.objects));
    let paths = PathTable::of(&root, &objects.spots());
    let commit = repository.tip.unwrap_or(ObjectId::null(HashKind::Sha1));
    Head::of(commit, root, Some(paths), objects)
}
