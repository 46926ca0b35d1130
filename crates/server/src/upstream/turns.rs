//! Turns to make the server fetch. Strangers can ask for them, so there are bounds for all strangers together and for
//! each.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::limits::{
    FetchShare,
    places::{Claimant, GaveWay, HeldPlace, PlaceRules, SharedPlaces},
};

/// Requests that fetch, or wait for the writer with what they fetched. Each has up to 8 MiB in memory. Strangers
/// together, and any single address, project or key, can have at most half of the turns.
const MAX_FETCHING: usize = 32;
/// How many requests can wait for their turn, and how long.
const MAX_WAITING: usize = 256;
const MAX_WAIT: Duration = Duration::from_secs(10);
/// A turn lasts at least this long. Most fetches are done by then.
const GRACE: Duration = Duration::from_millis(500);

const TURNS: PlaceRules = PlaceRules {
    total: MAX_FETCHING,
    share: MAX_FETCHING / 2,
    strangers: MAX_FETCHING / 2,
    waiting: MAX_WAITING,
    max_wait: MAX_WAIT,
    grace: Some(GRACE),
    pace: None,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchKind {
    Signers,
    Checksums,
    Release,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchOutcome {
    Fetched,
    /// The URL or its address is not allowed.
    Refused,
    Failed,
    /// Too many others.
    Busy,
}

#[derive(Debug)]
pub struct FetchTurns {
    turns: Arc<SharedPlaces>,
    counts: [[AtomicU64; FetchOutcome::ALL.len()]; FetchKind::ALL.len()],
}

/// Proves that its holder can fetch.
#[derive(Debug)]
pub struct FetchTurn {
    pub(crate) kind: FetchKind,
    place: HeldPlace,
    _share: Option<FetchShare>,
}

impl Default for FetchTurns {
    fn default() -> Self {
        Self { turns: SharedPlaces::new(TURNS), counts: Default::default() }
    }
}

impl FetchTurn {
    /// Fetches until the turn ends.
    pub(crate) async fn keep<T>(&self, fetch: impl Future<Output = T>) -> Result<T, GaveWay> {
        self.place.keep(fetch).await
    }
}

impl FetchTurns {
    /// Waits for a turn; `None` if too many others wait, or it takes too long.
    pub async fn begin(
        &self,
        kind: FetchKind,
        claimant: Claimant,
        share: Option<FetchShare>,
    ) -> Option<FetchTurn> {
        let Ok(place) = self.turns.take(claimant).await else {
            self.note(kind, FetchOutcome::Busy);
            return None;
        };
        Some(FetchTurn { kind, place, _share: share })
    }

    pub fn turns(&self) -> &SharedPlaces {
        &self.turns
    }

    pub(crate) fn note(&self, kind: FetchKind, outcome: FetchOutcome) {
        self.counts[kind as usize][outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn count(&self, kind: FetchKind, outcome: FetchOutcome) -> u64 {
        self.counts[kind as usize][outcome as usize].load(Ordering::Relaxed)
    }

    /// Requests that have a turn or wait for one.
    pub fn under_way(&self) -> usize {
        self.turns.held() + self.turns.waiting()
    }
}

impl FetchKind {
    pub const ALL: [Self; 3] = [Self::Signers, Self::Checksums, Self::Release];

    pub fn name(self) -> &'static str {
        match self {
            Self::Signers => "signers",
            Self::Checksums => "checksums",
            Self::Release => "release",
        }
    }
}

impl FetchOutcome {
    pub const ALL: [Self; 4] = [Self::Fetched, Self::Refused, Self::Failed, Self::Busy];

    pub fn name(self) -> &'static str {
        match self {
            Self::Fetched => "fetched",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Busy => "busy",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_comes_when_all_turns_are_taken_waits_a_while_and_no_more_than_some_do() {
        let fetching = FetchTurns::default();
        let begin = || fetching.begin(FetchKind::Signers, Claimant::default(), None);
        let mut turns: Vec<_> = join_all((0..MAX_FETCHING).map(|_| begin())).await;
        assert!(turns.iter().all(Option::is_some));

        let mut waiting = Box::pin(begin());
        assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
        turns.pop();
        assert!(waiting.as_mut().now_or_never().unwrap().is_some(), "a turn became free");
        let taken = begin();
        drop(waiting);
        turns.push(taken.await);

        let mut queue: Vec<_> = (0..MAX_WAITING).map(|_| Box::pin(begin())).collect();
        assert!(queue.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
        assert_eq!(fetching.under_way(), MAX_FETCHING + MAX_WAITING);
        assert!(begin().now_or_never().unwrap().is_none(), "the queue is full");
        assert!(join_all(queue).await.iter().all(Option::is_none), "their time is up");
        assert_eq!(fetching.count(FetchKind::Signers, FetchOutcome::Busy), 1 + MAX_WAITING as u64);
        assert_eq!(fetching.under_way(), MAX_FETCHING);
    }
}
