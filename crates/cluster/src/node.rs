//! How far this node is, and how the database does. The parts of a node share it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use countersign_store::{ObjectId, histogram::Histogram};
use tokio::sync::{Notify, futures::Notified, watch};
use uuid::Uuid;

use crate::error::DatabaseError;

/// Up to where this node has published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AppliedBatch {
    /// 0 at the very beginning.
    pub seq: i64,
    pub head: Option<ObjectId>,
}

/// Whether the database answers.
#[derive(Debug, Clone)]
pub enum Reachability {
    /// It was not asked yet.
    Unasked,
    Since(Instant),
    NotSince {
        since: Instant,
        reason: Arc<DatabaseError>,
    },
}

#[derive(Debug)]
pub struct NodeState {
    name: String,
    instance: String,
    applied: watch::Sender<AppliedBatch>,
    newest: AtomicI64,
    offered: AtomicI64,
    behind_since: Mutex<Option<Instant>>,
    reachability: Mutex<Reachability>,
    wake: Notify,
    news: Notify,
    races_lost: AtomicU64,
    resolved: AtomicU64,
    /// How long the database took to answer, in microseconds.
    pub latency: Histogram<12>,
}

impl NodeState {
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            instance: Uuid::new_v4().to_string(),
            applied: watch::Sender::new(AppliedBatch::default()),
            newest: AtomicI64::new(0),
            offered: AtomicI64::new(0),
            behind_since: Mutex::new(None),
            reachability: Mutex::new(Reachability::Unasked),
            wake: Notify::new(),
            news: Notify::new(),
            races_lost: AtomicU64::new(0),
            resolved: AtomicU64::new(0),
            latency: Histogram::new([
                500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 512_000, 2_000_000,
                10_000_000,
            ]),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Of this run of the program. Two nodes can have the same name by mistake.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    pub fn applied(&self) -> AppliedBatch {
        *self.applied.borrow()
    }

    /// Tells of each change of [`NodeState::applied`].
    pub fn watch_applied(&self) -> watch::Receiver<AppliedBatch> {
        self.applied.subscribe()
    }

    /// The newest batch in the database that this node has heard of.
    pub fn newest(&self) -> i64 {
        self.newest.load(Ordering::Relaxed)
    }

    /// Batches in the database that this node has not published.
    pub fn lag(&self) -> u64 {
        u64::try_from(self.newest() - self.applied().seq).unwrap_or(0)
    }

    /// How long there have been such batches without a break.
    pub fn lag_time(&self, now: Instant) -> Duration {
        let since = *self.behind_since.lock().unwrap_or_else(PoisonError::into_inner);
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    pub fn reachability(&self) -> Reachability {
        self.reachability.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When the database was found again, or first; `None` while it cannot be reached.
    pub fn back_since(&self) -> Option<Instant> {
        match self.reachability() {
            Reachability::Since(since) => Some(since),
            Reachability::Unasked | Reachability::NotSince { .. } => None,
        }
    }

    /// Batches of this node that came second.
    pub fn races_lost(&self) -> u64 {
        self.races_lost.load(Ordering::Relaxed)
    }

    /// Appends whose answer was lost, and that had to be repeated.
    pub fn repeated_appends(&self) -> u64 {
        self.resolved.load(Ordering::Relaxed)
    }

    /// Waits until there may be new batches in the database. One waiter at a time.
    pub async fn await_news(&self) {
        self.wake.notified().await;
    }

    /// The same, for news that come from now on; any number of waiters.
    pub(crate) fn hear_news(&self) -> Notified<'_> {
        self.news.notified()
    }

    /// Lets those look who wait for news.
    pub fn wake(&self) {
        self.wake.notify_one();
        self.news.notify_waiters();
    }

    pub(crate) fn note_applied(&self, applied: AppliedBatch) {
        self.applied.send_replace(applied);
        self.newest.fetch_max(applied.seq, Ordering::Relaxed);
        self.note_lag();
    }

    /// The database said that this is its newest batch. Less than before is possible: a failover can lose batches.
    pub(crate) fn note_newest(&self, seq: i64) {
        self.newest.store(seq, Ordering::Relaxed);
        self.note_lag();
    }

    /// There is at least this batch.
    pub(crate) fn note_heard(&self, seq: i64) {
        self.newest.fetch_max(seq, Ordering::Relaxed);
        self.note_lag();
    }

    /// This node offers a batch with this number, and publishes it if it is the one.
    pub(crate) fn note_offered(&self, seq: i64) {
        self.offered.fetch_max(seq, Ordering::Relaxed);
    }

    pub(crate) fn has_offered(&self, seq: i64) -> bool {
        seq <= self.offered.load(Ordering::Relaxed)
    }

    pub(crate) fn note_race_lost(&self) {
        self.races_lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_repeated(&self) {
        self.resolved.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_answer<T>(&self, started: Instant, answer: &Result<T, DatabaseError>) {
        let mut state = self.reachability.lock().unwrap_or_else(PoisonError::into_inner);
        match (answer, &*state) {
            (Ok(_), Reachability::Since(_)) | (Err(_), Reachability::NotSince { .. }) => {}
            (Ok(_), Reachability::Unasked) => *state = Reachability::Since(Instant::now()),
            (Ok(_), Reachability::NotSince { since, .. }) => {
                tracing::info!(seconds = since.elapsed().as_secs(), "the database answers again");
                *state = Reachability::Since(Instant::now());
            }
            (Err(reason), Reachability::Unasked | Reachability::Since(_)) => {
                tracing::warn!(error = reason as &dyn std::error::Error, "the database does not answer");
                *state = Reachability::NotSince { since: Instant::now(), reason: Arc::new(reason.clone()) };
            }
        }
        if answer.is_ok() {
            self.latency.note(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
    }

    fn note_lag(&self) {
        let mut since = self.behind_since.lock().unwrap_or_else(PoisonError::into_inner);
        *since = if self.lag() == 0 { None } else { since.or_else(|| Some(Instant::now())) };
    }
}
