//! Fetches for handlers: signers files, checksums files and releases, each when it is its turn.

pub mod releases;

use std::{sync::Arc, time::Duration};

use countersign_core::{rules::decide::assets::Release, values::shown::shown_text};
use countersign_forge::forges::{FetchedSigners, Forges, ReleaseSource, SignersSource};
use countersign_forge::{fetch, fetch::FetchError, fetch::Fetcher, fetch::Wait, file_server::FileServers};
use countersign_store::audit::replay::MAX_FETCH;
use url::Url;

use crate::http::error::ApiError;
use crate::http::upstream::releases::{DownloadError, ReleaseLimits, Releases};
use crate::limits::semaphore::{Claimant, FairSemaphore, Permit, SemaphoreRules};
use crate::metrics::{Counter, named};

/// Requests that fetch, or wait for the writer with what they fetched. Each has up to 8 MiB in memory. Strangers
/// together, and any single address, project or key, can have at most half of the turns.
pub const MAX_FETCHING: usize = 32;
/// How many requests can wait for their turn.
pub const MAX_WAITING: usize = 256;
const TURNS: SemaphoreRules = SemaphoreRules {
    share: MAX_FETCHING / 2,
    strangers: MAX_FETCHING / 2,
    waiting: MAX_WAITING,
    max_wait: Duration::from_secs(10),
    // Most fetches are done by then.
    grace: Some(Duration::from_millis(500)),
    ..SemaphoreRules::of(MAX_FETCHING)
};

named! {
    pub enum FetchKind {
        Signers = "signers",
        Checksums = "checksums",
        Release = "release",
    }
}

named! {
    pub enum FetchOutcome {
        Fetched = "fetched",
        /// The URL or its address is not allowed.
        Refused = "refused",
        Failed = "failed",
        /// Too many others.
        Busy = "busy",
    }
}

/// The source of signers files and releases.
#[derive(Debug)]
pub struct Upstream {
    pub forges: Forges,
    pub file_servers: FileServers,
    pub turns: FetchTurns,
    pub releases: Releases,
    pub fetcher: Fetcher,
    /// The largest signers file.
    pub signers_file_bytes: u64,
    pub release_limits: ReleaseLimits,
}

/// The claim of a caller that wants the server to fetch.
#[derive(Debug)]
pub struct FetchClaim {
    pub claimant: Claimant,
    /// The share of what one address and one key can fetch at the same time.
    pub share: Option<[Permit; 2]>,
}

/// Turns to make the server fetch. Strangers can ask for them, so there are bounds for all strangers together and for
/// each.
#[derive(Debug)]
pub struct FetchTurns {
    pub turns: Arc<FairSemaphore>,
    counts: [[Counter; FetchOutcome::ALL.len()]; FetchKind::ALL.len()],
}

/// Proves that its holder can fetch.
#[derive(Debug)]
pub struct FetchTurn {
    kind: FetchKind,
    permit: Permit,
    _share: Option<[Permit; 2]>,
}

impl Default for FetchTurns {
    fn default() -> Self {
        Self { turns: FairSemaphore::new(TURNS), counts: Default::default() }
    }
}

impl FetchTurns {
    /// Waits for a turn to fetch.
    pub async fn begin(&self, kind: FetchKind, claim: FetchClaim) -> Result<FetchTurn, ApiError> {
        let permit = self.turns.take(claim.claimant).await;
        let permit = permit.inspect_err(|_| self.note(kind, FetchOutcome::Busy))?;
        Ok(FetchTurn { kind, permit, _share: claim.share })
    }

    fn note(&self, kind: FetchKind, outcome: FetchOutcome) {
        self.counts[kind as usize][outcome as usize].add(1);
    }

    pub fn count(&self, kind: FetchKind, outcome: FetchOutcome) -> u64 {
        self.counts[kind as usize][outcome as usize].get()
    }

    /// Requests that have a turn or wait for one.
    pub fn under_way(&self) -> usize {
        self.turns.held() + self.turns.waiting()
    }
}

impl Upstream {
    pub async fn fetch_signers(
        &self,
        turn: &FetchTurn,
        source: &SignersSource,
    ) -> Result<FetchedSigners, ApiError> {
        let fetching = self.fetcher.fetch_signers(source, self.signers_file_bytes);
        // One fetch can ask a forge several times, each with its own limit.
        let fetching = turn.permit.keep(tokio::time::timeout(MAX_FETCH, fetching));
        let fetched = fetching.await?.unwrap_or_else(|_| {
            Err(FetchError::TimedOut { url: shown_text(&source.url), wait: Wait::Total(MAX_FETCH) })
        });
        self.note(turn.kind, &fetched);
        Ok(fetched?)
    }

    /// A release with the digests of all its assets. A request that joins another's download also keeps its share,
    /// since it keeps a connection.
    pub async fn download_release(
        &self,
        source: ReleaseSource,
        claim: FetchClaim,
    ) -> Result<Arc<Release>, ApiError> {
        let FetchClaim { claimant, share: _share } = claim;
        let outcome = self.releases.download(&self.fetcher, source, self.release_limits, claimant).await;
        let noted = match &outcome {
            Ok(_) => FetchOutcome::Fetched,
            Err(DownloadError::Busy | DownloadError::GaveWay) => FetchOutcome::Busy,
            Err(DownloadError::Release(error)) if error.is_refused_as_given() => FetchOutcome::Refused,
            Err(DownloadError::Release(_) | DownloadError::TimedOut(_) | DownloadError::Ended) => {
                FetchOutcome::Failed
            }
        };
        self.turns.note(FetchKind::Release, noted);
        Ok(outcome?)
    }

    /// Content that must exist.
    pub async fn fetch(
        &self,
        turn: &FetchTurn,
        url: &Url,
        limits: fetch::FetchLimits,
    ) -> Result<Vec<u8>, ApiError> {
        let fetched = turn.permit.keep(self.fetcher.get(url, limits)).await?;
        self.note(turn.kind, &fetched);
        fetched?.ok_or_else(|| ApiError::missing_upstream(url))
    }

    fn note<T>(&self, kind: FetchKind, fetched: &Result<T, FetchError>) {
        let outcome = match fetched {
            Ok(_) => FetchOutcome::Fetched,
            Err(error) if error.is_refused_as_given() => FetchOutcome::Refused,
            Err(_) => FetchOutcome::Failed,
        };
        self.turns.note(kind, outcome);
    }
}
