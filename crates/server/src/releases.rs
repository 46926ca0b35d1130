//! Downloads of releases: one for all who ask for the same release at the same time.
//!
//! A download belongs to nobody's connection. Whoever asks again, after a proxy cut the first connection, joins it; with
//! nobody waiting it goes on for a minute, and then stops.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_core::{
    decide::assets::Release,
    index::{Digests, PublishedFile},
    path::RepoPath,
};
use countersign_forge::{
    fetch::Fetcher,
    forges::ReleaseSource,
    release::{Asset, ReleaseError},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use thiserror::Error;
use tokio::{sync::watch, task::JoinHandle};

/// How long a download without anybody waiting for it goes on, and how long its result is kept for whoever comes back.
const PATIENCE: Duration = Duration::from_secs(60);
/// Assets of one release that are downloaded at the same time.
const AT_ONCE: usize = 4;
/// How often a large asset is mentioned in the log.
const PROGRESS_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub struct Releases {
    running: Arc<Mutex<HashMap<RepoPath, Arc<Shared>>>>,
    patience: Duration,
}

type Shared = watch::Sender<Option<Outcome>>;

/// What a download came to, for everybody who waited.
pub type Outcome = Result<Arc<Release>, DownloadError>;

#[derive(Debug, Clone, Error)]
pub enum DownloadError {
    #[error(transparent)]
    Release(#[from] Arc<ReleaseError>),
    #[error("the download ended unexpectedly")]
    Ended,
}

/// What one release may weigh.
#[derive(Debug, Clone, Copy)]
pub struct ReleaseLimits {
    pub assets: usize,
    pub asset_bytes: u64,
}

impl Default for Releases {
    fn default() -> Self {
        Self::with_patience(PATIENCE)
    }
}

impl Releases {
    pub fn with_patience(patience: Duration) -> Self {
        Self { running: Arc::default(), patience }
    }

    /// Downloads the release and computes the digests of its assets, or joins whoever does so already.
    pub async fn download(&self, fetcher: &Fetcher, source: ReleaseSource, limits: ReleaseLimits) -> Outcome {
        let mut result = self.join(fetcher, source, limits);
        match result.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Err(DownloadError::Ended)),
            Err(_) => Err(DownloadError::Ended),
        }
    }

    fn join(
        &self,
        fetcher: &Fetcher,
        source: ReleaseSource,
        limits: ReleaseLimits,
    ) -> watch::Receiver<Option<Outcome>> {
        let mut running = self.lock();
        if let Some(shared) = running.get(&source.dir) {
            return shared.subscribe();
        }
        let (shared, result) = watch::channel(None);
        let shared = Arc::new(shared);
        let key = source.dir.clone();
        running.insert(key.clone(), Arc::clone(&shared));
        let fetcher = fetcher.clone();
        let work = tokio::spawn(async move { download(&fetcher, &source, limits).await });
        tokio::spawn(self.clone().supervise(key, shared, work));
        result
    }

    async fn supervise(self, key: RepoPath, shared: Arc<Shared>, mut work: JoinHandle<Outcome>) {
        loop {
            let outcome = tokio::select! {
                outcome = &mut work => outcome.unwrap_or(Err(DownloadError::Ended)),
                () = stay_abandoned(&shared, self.patience) => {
                    let mut running = self.lock();
                    if shared.receiver_count() > 0 {
                        continue;
                    }
                    running.remove(&key);
                    work.abort();
                    tracing::info!(release = %key, "nobody waits for this release any more: stopped");
                    return;
                }
            };
            let is_awaited = {
                let mut running = self.lock();
                let is_awaited = shared.receiver_count() > 0;
                // Whoever comes later wants to know what the release is then.
                if is_awaited {
                    running.remove(&key);
                }
                is_awaited
            };
            shared.send_replace(Some(outcome));
            if !is_awaited {
                tokio::time::sleep(self.patience).await;
                self.lock().remove(&key);
            }
            return;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RepoPath, Arc<Shared>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns once nobody waits, and nobody does after that long either.
async fn stay_abandoned(shared: &Shared, patience: Duration) {
    loop {
        shared.closed().await;
        tokio::time::sleep(patience).await;
        if shared.receiver_count() == 0 {
            return;
        }
    }
}

async fn download(fetcher: &Fetcher, source: &ReleaseSource, limits: ReleaseLimits) -> Outcome {
    let metadata = fetcher.fetch_release(source, limits.assets).await.map_err(Arc::new)?;
    let count = metadata.assets.len();
    tracing::info!(release = %source.dir, assets = count, "downloading a release");
    let hash = |(i, asset): (usize, Asset)| async move {
        hash_asset(
            fetcher,
            asset,
            limits.asset_bytes,
            Position { release: &source.dir, number: i + 1, count },
        )
        .await
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

/// Which of the release's assets this is.
#[derive(Debug, Clone, Copy)]
struct Position<'a> {
    release: &'a RepoPath,
    number: usize,
    count: usize,
}

impl Position<'_> {
    fn log(&self, bytes: u64) {
        let Self { release, number, count } = self;
        tracing::info!(%release, "asset {number} of {count}, {} MiB", bytes >> 20);
    }
}

async fn hash_asset(
    fetcher: &Fetcher,
    asset: Asset,
    max_bytes: u64,
    position: Position<'_>,
) -> Result<PublishedFile, ReleaseError> {
    let mentioned = AtomicU64::new(0);
    let progress = |bytes: u64| {
        let (step, is_last) = (bytes / PROGRESS_BYTES, asset.size == Some(bytes));
        if mentioned.fetch_max(step, Ordering::Relaxed) < step && !is_last {
            position.log(bytes);
        }
    };
    let hashed = fetcher.hash_asset(&asset, max_bytes, &progress).await?;
    position.log(hashed.size);
    Ok(PublishedFile {
        file_name: asset.name,
        size: Some(hashed.size),
        source: asset.source,
        digests: Digests { sha256: Some(hashed.sha256), sha512: Some(hashed.sha512) },
    })
}
