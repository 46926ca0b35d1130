//! Downloads of releases: one for all requests for the same release at the same time.
//!
//! A download belongs to no connection. A client whose connection was cut joins it when it asks again. While no client
//! waits it continues for a minute, and then stops.

use std::sync::{Arc, Mutex, atomic::AtomicU64, atomic::Ordering};
use std::{collections::HashMap, time::Duration};

use countersign_core::documents::index::{Digests, PublishedFile};
use countersign_core::{rules::decide::assets::Release, values::path::RepoPath};
use countersign_forge::{fetch::Fetcher, forges::ReleaseSource, release::Asset, release::ReleaseError};
use countersign_store::machine::clock::lock;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use thiserror::Error;
use tokio::{sync::watch, task::JoinHandle};

use crate::limits::semaphore::{Claimant, FairSemaphore, GaveWay, MinimumPace, Permit, SemaphoreRules};
use crate::metrics::Counter;

/// How long a download continues while no client waits, and how long its result is kept for clients that come back.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// The most downloads at a time. Each has a few connections, and a thread for each hash function of each of them. One
/// address, project or key can have at most half of them, so that it cannot keep all others from registering releases.
const MAX_DOWNLOADS: usize = 8;
const DOWNLOADS: SemaphoreRules = SemaphoreRules {
    share: MAX_DOWNLOADS / 2,
    // Only signers of a project can ask.
    strangers: 0,
    waiting: 64,
    max_wait: Duration::from_secs(1),
    grace: Some(Duration::from_secs(10)),
    pace: Some(MinimumPace { bytes_per_second: 64 * 1024, after: Duration::from_secs(10) }),
    ..SemaphoreRules::of(MAX_DOWNLOADS)
};
/// Downloads under way, and results that are kept for clients that come back.
const MAX_KNOWN: usize = 16;
/// Assets of one release to download at the same time.
const AT_ONCE: usize = 4;
/// How often the log mentions a large asset.
const PROGRESS_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub struct Releases {
    known: Arc<Mutex<HashMap<RepoPath, Arc<Shared>>>>,
    /// Held by downloads, not by the clients that wait: a client that leaves makes no room for another download.
    pub permits: Arc<FairSemaphore>,
    kept_for: Duration,
}

/// A download under way, or a result that no client has taken yet.
#[derive(Debug)]
struct Shared {
    outcome: watch::Sender<Option<DownloadOutcome>>,
    /// How many requests joined.
    joined: AtomicU64,
}

/// The result of a download, for all that waited.
pub type DownloadOutcome = Result<Arc<Release>, DownloadError>;

#[derive(Debug, Clone, Error)]
pub enum DownloadError {
    #[error(transparent)]
    Release(#[from] Arc<ReleaseError>),
    #[error("too many releases are being downloaded: try again later")]
    Busy,
    #[error("this download had to make room for others that waited. Try again later")]
    GaveWay,
    #[error("the release was not downloaded within {0:?}")]
    TimedOut(Duration),
    #[error("the download ended unexpectedly")]
    Ended,
}

/// How large a release can be, and how long it can take.
#[derive(Debug, Clone, Copy)]
pub struct ReleaseLimits {
    pub assets: usize,
    pub asset_bytes: u64,
    pub total_time: Duration,
}

impl Default for Releases {
    fn default() -> Self {
        Self::kept_for(KEPT_FOR)
    }
}

impl Releases {
    pub fn kept_for(kept_for: Duration) -> Self {
        Self { known: Arc::default(), permits: FairSemaphore::new(DOWNLOADS), kept_for }
    }

    /// Downloads the release and computes the digests of its assets, or joins a download under way.
    pub async fn download(
        &self,
        fetcher: &Fetcher,
        source: ReleaseSource,
        limits: ReleaseLimits,
        claimant: Claimant,
    ) -> DownloadOutcome {
        let joined = Self::join(&mut lock(&self.known), &source.dir);
        let mut outcome = match joined {
            Some(outcome) => outcome,
            None => {
                let permit = self.permits.take(claimant).await.map_err(|_| DownloadError::Busy)?;
                self.start(fetcher, source, limits, permit)
            }
        };
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Err(DownloadError::Ended)),
            Err(_) => Err(DownloadError::Ended),
        }
    }

    fn join(
        known: &mut HashMap<RepoPath, Arc<Shared>>,
        key: &RepoPath,
    ) -> Option<watch::Receiver<Option<DownloadOutcome>>> {
        let shared = known.get(key).cloned()?;
        shared.joined.fetch_add(1, Ordering::Relaxed);
        // A result is used once. A later request wants the state of the release at that time.
        if shared.outcome.borrow().is_some() {
            known.remove(key);
        }
        Some(shared.outcome.subscribe())
    }

    fn start(
        &self,
        fetcher: &Fetcher,
        source: ReleaseSource,
        limits: ReleaseLimits,
        permit: Permit,
    ) -> watch::Receiver<Option<DownloadOutcome>> {
        let mut known = lock(&self.known);
        let key = source.dir.clone();
        // Another request may have started it while this one waited for a place.
        if let Some(outcome) = Self::join(&mut known, &key) {
            return outcome;
        }
        let (sender, outcome) = watch::channel(None);
        let shared = Arc::new(Shared { outcome: sender, joined: AtomicU64::new(1) });
        known.insert(key.clone(), Arc::clone(&shared));
        let fetcher = fetcher.clone();
        let work = tokio::spawn(async move {
            let meter = permit.meter();
            let work = tokio::time::timeout(limits.total_time, download(&fetcher, &source, limits, &meter));
            match permit.keep(work).await {
                Ok(done) => done.unwrap_or(Err(DownloadError::TimedOut(limits.total_time))),
                Err(GaveWay) => Err(DownloadError::GaveWay),
            }
        });
        tokio::spawn(self.clone().supervise(key, shared, work));
        outcome
    }

    async fn supervise(self, key: RepoPath, shared: Arc<Shared>, mut work: JoinHandle<DownloadOutcome>) {
        let outcome = loop {
            tokio::select! {
                outcome = &mut work => break outcome.unwrap_or(Err(DownloadError::Ended)),
                () = stay_abandoned(&shared, self.kept_for) => {}
            }
            let mut known = lock(&self.known);
            if shared.outcome.receiver_count() == 0 {
                known.remove(&key);
                work.abort();
                tracing::info!(release = %key, "stopped a download that no client waits for");
                return;
            }
        };
        let is_kept = {
            let mut known = lock(&self.known);
            // A failure is not worth keeping. A success is kept only if no client has received it.
            let is_wanted = outcome.is_ok() && shared.outcome.receiver_count() == 0;
            let is_kept = is_wanted && known.len() <= MAX_KNOWN;
            if !is_kept {
                known.remove(&key);
            }
            shared.outcome.send_replace(Some(outcome));
            is_kept
        };
        if is_kept {
            tokio::time::sleep(self.kept_for).await;
            let mut known = lock(&self.known);
            // A new download may have this entry by now.
            if known.get(&key).is_some_and(|other| Arc::ptr_eq(other, &shared)) {
                known.remove(&key);
            }
        }
    }
}

/// Returns once no client has waited for that long.
async fn stay_abandoned(shared: &Shared, kept_for: Duration) {
    loop {
        shared.outcome.closed().await;
        let joined = shared.joined.load(Ordering::Relaxed);
        tokio::time::sleep(kept_for).await;
        // If a client came and left meanwhile, the whole time starts again.
        if shared.joined.load(Ordering::Relaxed) == joined && shared.outcome.receiver_count() == 0 {
            return;
        }
    }
}

async fn download(
    fetcher: &Fetcher,
    source: &ReleaseSource,
    limits: ReleaseLimits,
    meter: &Counter,
) -> DownloadOutcome {
    let metadata = fetcher.fetch_release(source, limits.assets).await.map_err(Arc::new)?;
    let count = metadata.assets.len();
    tracing::info!(release = %source.dir, assets = count, "downloading a release");
    let hash = |(i, asset): (usize, Asset)| async move {
        let log = |bytes: u64| {
            tracing::info!(release = %source.dir, "asset {} of {count}, {} MiB", i + 1, bytes >> 20);
        };
        let (mentioned, moved) = (AtomicU64::new(0), AtomicU64::new(0));
        let progress = |bytes: u64| {
            meter.add(bytes.saturating_sub(moved.fetch_max(bytes, Ordering::Relaxed)));
            let (step, is_last) = (bytes / PROGRESS_BYTES, asset.size == Some(bytes));
            if mentioned.fetch_max(step, Ordering::Relaxed) < step && !is_last {
                log(bytes);
            }
        };
        let hashed = fetcher.hash_asset(&asset, limits.asset_bytes, &progress).await?;
        log(hashed.size);
        Ok::<_, ReleaseError>(PublishedFile {
            file_name: asset.name,
            size: Some(hashed.size),
            source: asset.source,
            digests: Digests { sha256: Some(hashed.sha256), sha512: Some(hashed.sha512) },
        })
    };
    let assets = stream::iter(metadata.assets.into_iter().enumerate());
    let mut published_files: Vec<PublishedFile> =
        assets.map(hash).buffer_unordered(AT_ONCE).try_collect().await.map_err(Arc::new)?;
    published_files.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    Ok(Arc::new(Release {
        dir: source.dir.clone(),
        release_url: Some(source.url.clone()),
        published_on: metadata.published_on,
        published_files,
    }))
}
