//! The store: opening a data directory, and the store at work. One thread writes, and every reader takes the newest
//! published [`Head`].

use std::sync::{Arc, mpsc::SyncSender, mpsc::TrySendError, mpsc::sync_channel};
use std::{collections::HashSet, path::Path};

use arc_swap::{ArcSwap, ArcSwapOption};
use countersign_core::documents::layout::RepositoryMarker;
use countersign_core::rules::{decide::register::create, snapshot::Change};
use countersign_core::values::{json::ParseError, time::Timestamp};
use gix::ObjectId;
use thiserror::Error;
use tokio::sync::oneshot;

use crate::budget::{StorageBudget, StorageLimits};
use crate::journal::{JournalEntry, export::JournalExport, follow::FollowError};
use crate::journal::{milestones::Milestones, recent_commits::RecentCommits};
use crate::machine::data_dir::{DataDir, DataDirError, REPOSITORY_DIR};
use crate::machine::{clock::Clock, clock::JoinedThread, disk::Disk, disk::DiskError};
use crate::nonces::{NonceError, Nonces};
use crate::repository::{OpenError, Repository};
use crate::writer::jobs::{Job, transaction};
use crate::writer::{
    Repeating, Sharing, StoreState, Writer, check_history_lead, commit_feed::CommitFeed, feed::Feed,
    fold::Folder, load_head, newest_time, stats::StoreStats,
};
use crate::{
    audit::replay::SpeaksFor, catalogue::Catalogue, error::StoreError, nonces, objects::commit::Author,
    sequence::Sequencer, snapshot::Head,
};

/// Changes that may wait; beyond it a caller is told to come back.
const QUEUE: usize = 1_024;

#[derive(Debug)]
pub struct Options {
    /// Author and committer of every commit.
    pub author: Author,
    pub clock: Clock,
    /// The first commit of a repository that has none; must hold the format marker (D38).
    pub initial: fn(Timestamp) -> Change,
    /// How much may be stored in a day; `None` for as much as there is.
    pub budget: Option<StorageLimits>,
    /// Which project a URL may speak for; for commits that others made.
    pub speaks_for: SpeaksFor,
    pub role: StoreRole,
}

/// Who makes the commits.
#[derive(Debug)]
pub enum StoreRole {
    /// This server makes the commits alone.
    Single,
    /// This server and others make them, in an order that they share.
    Node(Box<dyn Sequencer>),
    /// Another server makes them, and this one repeats them.
    Mirror,
}

/// The repository at work. Dropping it stores what still waits, then returns.
#[derive(Debug)]
pub struct Store {
    disk: Disk,
    shared: Arc<StoreState>,
    jobs: SyncSender<Job>,
    _writer: JoinedThread,
}

impl Store {
    pub fn start(mut repository: Repository, options: Options) -> Result<Self, StoreError> {
        repository.set_clock(options.clock.clone());
        let (objects, pack_dir) = (Arc::clone(&repository.objects), repository.pack_dir());
        let milestones = Arc::new(Milestones::new(Arc::clone(&objects)));
        let recent_commits =
            RecentCommits::new(Arc::clone(&objects), Arc::clone(&milestones), repository.tip);
        let shared = Arc::new(StoreState {
            published: ArcSwap::from_pointee(load_head(&repository)),
            newest: ArcSwap::from_pointee(newest_time(&repository)?),
            stats: StoreStats::default(),
            recent_commits: Arc::new(recent_commits),
            budget: options.budget.map(StorageBudget::new),
            halted: ArcSwapOption::empty(),
            milestones,
            feed: Feed::default(),
        });
        let disk = repository.disk.clone();
        let folder = Folder::start(objects, disk.clone(), pack_dir.clone())
            .map_err(|source| DiskError::new("start a thread for", &pack_dir, source))?;
        folder.wake();
        let is_unborn = repository.is_unborn();
        let Options { author, clock, initial, budget: _, speaks_for, role } = options;
        let repeating = Repeating::new(speaks_for);
        let mut writer = Writer {
            repository,
            shared: Arc::clone(&shared),
            author,
            clock,
            folder,
            repeating,
            sharing: None,
        };
        match role {
            StoreRole::Single if is_unborn => writer.commit_initial(initial)?,
            StoreRole::Single | StoreRole::Mirror => {}
            StoreRole::Node(sequencer) => {
                let (passed, rightly_passed) = (Vec::new(), HashSet::new());
                writer.sharing = Some(Sharing { sequencer, initial, passed, rightly_passed });
            }
        }
        let (jobs, queue) = sync_channel(QUEUE);
        let writer = JoinedThread::start("store-writer", move || writer.run(&queue));
        Ok(Self { disk, shared, jobs, _writer: writer.map_err(|_| StoreError::Closed)? })
    }

    /// The newest published state.
    pub fn head(&self) -> Arc<Head> {
        self.shared.published.load_full()
    }

    /// The newest published state, for a moment: cheaper than [`Store::head`], and to be let go of soon.
    pub fn glance(&self) -> impl std::ops::Deref<Target = Arc<Head>> {
        self.shared.published.load()
    }

    /// Runs `decide` on the newest state, and stores the change that it returns as one commit. The time that the
    /// decision gets is the time of the commit, and never before that of the commit before it (D191). Returns only
    /// after that commit, and every change that the decision saw, is on disk. An empty change, and a refusal, store
    /// nothing.
    pub async fn transact<T: Send + 'static, R: Send + 'static>(
        &self,
        decide: impl Fn(&Head, Timestamp) -> Result<(Change, T), R> + Send + 'static,
    ) -> Result<Result<T, R>, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Decide(transaction(decide, reply)))?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
        self.stats().waiting.add(1);
        self.jobs.try_send(job).map_err(|error| {
            self.stats().waiting.subtract(1);
            match error {
                TrySendError::Full(_) => StoreError::Busy,
                TrySendError::Disconnected(_) => StoreError::Closed,
            }
        })
    }

    /// Repeats commits that another machine made, if the rules give them. What comes before the first entry that they
    /// do not give is published; that entry and those after it are not.
    pub async fn follow(&self, entries: Vec<JournalEntry>) -> Result<(), FollowError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Follow { entries, reply })?;
        answer.await.unwrap_or(Err(FollowError::Store(StoreError::Closed)))
    }

    /// Repeats what other nodes have put into the shared order. Returns when this node has everything that was there
    /// when it asked.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::CatchUp { reply })?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Whether a change can be made while the clock shows this: the history may be too far ahead of it (D191).
    pub fn check_clock(&self, clock: Timestamp) -> Result<(), StoreError> {
        check_history_lead(**self.shared.newest.load(), clock)
    }

    /// Why this node has stopped following the others, if it has.
    pub fn halted(&self) -> Option<Arc<String>> {
        self.shared.halted.load_full()
    }

    /// What was committed after `after`, or from the first commit on, up to the newest one. `None` if that commit is
    /// not in the history. Reads from disk.
    pub fn journal(&self, after: Option<ObjectId>) -> Result<Option<JournalExport>, StoreError> {
        self.shared.journal(after)
    }

    /// Commits with their content as they are published, for one who follows closely. One at a time.
    pub fn follow_commits(&self) -> CommitFeed {
        CommitFeed::new(Arc::clone(&self.shared))
    }

    /// How many rounds of fsync were made for all commits since the start.
    pub fn publishes(&self) -> u64 {
        let batches = &self.stats().batches;
        batches.counts().map(|(_, count)| count).sum::<u64>() + batches.above()
    }

    pub fn stats(&self) -> &StoreStats {
        &self.shared.stats
    }

    /// What happened: the newest commits, and whatever came before them.
    pub fn recent_commits(&self) -> &Arc<RecentCommits> {
        &self.shared.recent_commits
    }

    /// A catalogue of what is stored, still empty. It follows this store for as long as it is asked.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue::new(Arc::clone(&self.shared))
    }

    pub fn budget(&self) -> Option<&StorageBudget> {
        self.shared.budget.as_ref()
    }

    /// The disk, for what else lies in the data directory.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// How many packs there are.
    pub fn packs(&self) -> usize {
        self.shared.published.load().objects.packs().len()
    }
}

// Opening a data directory: the repository, and the nonces beside it.

#[derive(Debug, Error)]
pub enum OpenDataError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Repository(#[from] OpenError),
    #[error("the repository cannot be used: {error}")]
    Format { error: ParseError },
    #[error("the store of used nonces cannot be opened")]
    Nonces(#[from] NonceError),
    #[error("the repository cannot be written")]
    Store(#[from] StoreError),
}

/// What a server would find in its data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundData {
    /// The directory would be made, or filled.
    New,
    Present,
    /// A server is using it now.
    InUse,
}

/// Looks whether a server could start with this directory. Changes nothing, so any user can do this.
pub fn inspect(path: &Path) -> Result<FoundData, OpenDataError> {
    let is_held = DataDir::is_held(path)?;
    let repository = Repository::inspect(&path.join(REPOSITORY_DIR))?;
    repository.as_ref().map_or(Ok(()), check_format)?;
    Ok(match repository {
        _ if is_held => FoundData::InUse,
        Some(_) => FoundData::Present,
        None => FoundData::New,
    })
}

/// Whether this program knows the format of a repository, if it has a commit.
fn check_format(repository: &Repository) -> Result<(), OpenDataError> {
    if let Some(marker) = repository.marker()? {
        RepositoryMarker::parse(&marker).map_err(|error| OpenDataError::Format { error })?;
    }
    Ok(())
}

/// How a server uses its data directory.
#[derive(Debug)]
pub struct OpenSettings {
    pub author: Author,
    pub clock: Clock,
    pub budget: Option<StorageLimits>,
    pub speaks_for: SpeaksFor,
    pub role: StoreRole,
}

#[derive(Debug)]
pub struct OpenedData {
    pub store: Store,
    /// The nonces of a server on its own. Nodes share theirs, and a mirror has none.
    pub nonces: Option<Nonces>,
}

/// Opens the repository and the nonces beside it, and makes both where there are none.
pub fn open_repository(data_dir: &DataDir, settings: OpenSettings) -> Result<OpenedData, OpenDataError> {
    open_repository_on(Disk::default(), data_dir, settings)
}

/// Opens repository and nonces as [`open_repository`] does, on a disk that a test can make fail.
pub fn open_repository_on(
    disk: Disk,
    data_dir: &DataDir,
    settings: OpenSettings,
) -> Result<OpenedData, OpenDataError> {
    let OpenSettings { author, clock, budget, speaks_for, role } = settings;
    let repository = Repository::open_on(disk.clone(), &data_dir.repository())?;
    check_format(&repository)?;
    // Before the first commit, so that a crash between the two does not look like a restored clone (D38).
    let state = if repository.is_unborn() {
        nonces::RepositoryAge::Unborn
    } else {
        nonces::RepositoryAge::HasCommits
    };
    let nonces = match role {
        StoreRole::Single => Some(Nonces::open(disk, &data_dir.nonces(), state, clock.clone())?),
        StoreRole::Node(_) | StoreRole::Mirror => {
            // A server on its own that goes on from here does not know what others accepted meanwhile. Without the file
            // it knows that.
            nonces::remove(&data_dir.nonces())?;
            None
        }
    };
    let options = Options { author, clock, initial: create, budget, speaks_for, role };
    Ok(OpenedData { store: Store::start(repository, options)?, nonces })
}
