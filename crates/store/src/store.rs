//! The store at work: one thread writes, and every reader takes the newest published [`Head`].

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
};

use arc_swap::ArcSwap;
use countersign_core::rules::snapshot::Change;
use tokio::sync::oneshot;

use crate::{
    author::Author,
    budget::{StorageBudget, StorageLimits},
    catalogue::Catalogue,
    clock::Clock,
    disk::DiskError,
    error::StoreError,
    fold::Folder,
    log::Log,
    repository::Repository,
    snapshot::head::Head,
    stats::StoreStats,
    writer::{Job, Writer, job, load_head},
};

/// Changes that may wait; beyond it a caller is told to come back.
const QUEUE: usize = 1_024;

#[derive(Debug)]
pub struct Options {
    /// Author and committer of every commit.
    pub author: Author,
    pub clock: Clock,
    /// The first commit of a repository that has none; must hold the format marker (D38).
    pub initial: Change,
    /// How much may be stored in a day; `None` for as much as there is.
    pub budget: Option<StorageLimits>,
}

/// The repository at work. Dropping it stores what still waits, then returns.
#[derive(Debug)]
pub struct Store {
    published: Arc<ArcSwap<Head>>,
    publishes: Arc<AtomicU64>,
    stats: Arc<StoreStats>,
    log: Arc<Log>,
    budget: Option<Arc<StorageBudget>>,
    jobs: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
}

impl Store {
    pub fn start(repository: Repository, options: Options) -> Result<Self, StoreError> {
        let published = Arc::new(ArcSwap::from_pointee(load_head(&repository)));
        let publishes = Arc::new(AtomicU64::new(0));
        let stats = Arc::new(StoreStats::default());
        let log = Arc::new(Log::new(Arc::clone(&repository.objects), repository.tip()));
        let unborn = repository.is_unborn();
        let spawn_error =
            |source: io::Error| DiskError::new("start a thread for", &repository.pack_dir(), source);
        let folder =
            Folder::start(Arc::clone(&repository.objects), repository.disk.clone(), repository.pack_dir())
                .map_err(spawn_error)?;
        folder.wake();
        let budget = options.budget.map(StorageBudget::new).map(Arc::new);
        let mut writer = Writer {
            published: Arc::clone(&published),
            author: options.author,
            clock: options.clock,
            publishes: Arc::clone(&publishes),
            stats: Arc::clone(&stats),
            log: Arc::clone(&log),
            folder,
            budget: budget.clone(),
            unsettled: false,
            repository,
        };
        if unborn {
            writer.commit_initial(&options.initial)?;
        }
        let (jobs, queue) = sync_channel(QUEUE);
        let thread = thread::Builder::new().name("store-writer".to_owned());
        let writer = thread.spawn(move || writer.run(&queue)).map_err(|_| StoreError::Closed)?;
        Ok(Self { published, publishes, stats, log, budget, jobs: Some(jobs), writer: Some(writer) })
    }

    /// The newest published state.
    pub fn head(&self) -> Arc<Head> {
        self.published.load_full()
    }

    /// The same for a moment: cheaper, and to be let go of soon.
    pub fn glance(&self) -> impl std::ops::Deref<Target = Arc<Head>> {
        self.published.load()
    }

    /// Runs `decide` on the newest state, and stores the change that it returns as one commit. Returns only after that
    /// commit, and every change that the decision saw, is on disk. An empty change, and a refusal, store nothing.
    pub async fn transact<T: Send + 'static, R: Send + 'static>(
        &self,
        decide: impl Fn(&Head) -> Result<(Change, T), R> + Send + 'static,
    ) -> Result<Result<T, R>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        self.stats.note_queued();
        jobs.try_send(job(decide, reply)).map_err(|error| {
            self.stats.note_taken();
            match error {
                TrySendError::Full(_) => StoreError::Busy,
                TrySendError::Disconnected(_) => StoreError::Closed,
            }
        })?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// How many rounds of fsync were made for all commits since the start.
    pub fn publishes(&self) -> u64 {
        self.publishes.load(Ordering::Relaxed)
    }

    pub fn stats(&self) -> &StoreStats {
        &self.stats
    }

    /// What happened: the newest commits, and whatever came before them.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// A catalogue of what is stored, still empty. It follows this store for as long as it is asked.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue::new(Arc::clone(&self.published), Arc::clone(&self.log))
    }

    pub fn budget(&self) -> Option<&StorageBudget> {
        self.budget.as_deref()
    }

    /// How many packs there are.
    pub fn packs(&self) -> usize {
        self.published.load().files.objects.packs().len()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
