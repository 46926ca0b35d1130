//! Whose turn it is to make us fetch. Strangers can; so there are bounds for all of them together, and for each.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::FetchShare;

/// Requests that fetch at the same time.
const MAX_FETCHING: usize = 64;
/// Requests that wait for their turn, and how long.
const MAX_WAITING: usize = 256;
const MAX_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchKind {
    Signers,
    Checksums,
    Release,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchOutcome {
    Fetched,
    /// Not fetched, because of what the URL or its address is.
    Refused,
    Failed,
    /// Too many others.
    Busy,
}

#[derive(Debug)]
pub struct Fetching {
    /// Whoever fetches or waits has a place.
    places: Semaphore,
    turns: Semaphore,
    max_wait: Duration,
    counts: [[AtomicU64; FetchOutcome::ALL.len()]; FetchKind::ALL.len()],
}

/// Proves that its holder may fetch.
#[derive(Debug)]
pub struct Turn<'a> {
    pub(crate) kind: FetchKind,
    _turn: SemaphorePermit<'a>,
    _place: SemaphorePermit<'a>,
    _share: Option<FetchShare>,
}

impl Default for Fetching {
    fn default() -> Self {
        Self {
            places: Semaphore::new(MAX_FETCHING + MAX_WAITING),
            turns: Semaphore::new(MAX_FETCHING),
            max_wait: MAX_WAIT,
            counts: Default::default(),
        }
    }
}

impl Fetching {
    /// Waits for a turn; `None` if too many others wait, or it takes too long.
    pub async fn begin(&self, kind: FetchKind, share: Option<FetchShare>) -> Option<Turn<'_>> {
        let turn = async {
            let place = self.places.try_acquire().ok()?;
            let turn = tokio::time::timeout(self.max_wait, self.turns.acquire()).await.ok()?.ok()?;
            Some(Turn { kind, _turn: turn, _place: place, _share: share })
        };
        let turn = turn.await;
        if turn.is_none() {
            self.note(kind, FetchOutcome::Busy);
        }
        turn
    }

    pub(crate) fn note(&self, kind: FetchKind, outcome: FetchOutcome) {
        self.counts[kind as usize][outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn count(&self, kind: FetchKind, outcome: FetchOutcome) -> u64 {
        self.counts[kind as usize][outcome as usize].load(Ordering::Relaxed)
    }

    /// Requests that have a turn or wait for one.
    pub fn under_way(&self) -> usize {
        (MAX_FETCHING + MAX_WAITING).saturating_sub(self.places.available_permits())
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

    #[tokio::test]
    async fn whoever_comes_when_all_turns_are_taken_waits_a_while_and_no_more_than_some_do() {
        let fetching = Fetching { max_wait: Duration::from_millis(50), ..Fetching::default() };
        let begin = || fetching.begin(FetchKind::Signers, None);
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
