//! Knows how far this node is, how the database does, and whether their clocks agree. The parts of a node share it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::{collections::BTreeMap, fmt, time::Duration, time::Instant, time::SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use countersign_core::values::time::Timestamp;
use countersign_store::machine::clock::{Clock, lock};
use countersign_store::sequence::{MAX_CLOCK_ERROR, OrderPosition, PassedBatch};
use countersign_store::{ObjectId, writer::stats::Counter, writer::stats::Histogram};
use thiserror::Error;
use tokio::sync::{Notify, futures::Notified, watch};
use uuid::Uuid;

use crate::{database, error::DatabaseError};

/// How many batches are remembered by number, to see whether an answer of the database is about the same ones.
const MAX_JUDGED: usize = 1_000;

/// The batch up to which this node has judged the order, and published what counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AppliedBatch {
    /// The number of the batch; 0 at the very beginning.
    pub seq: i64,
    /// The last commit of this batch, which was published or passed over.
    pub judged: Option<ObjectId>,
    /// The newest commit that this node has published.
    pub head: Option<ObjectId>,
}

impl AppliedBatch {
    /// A batch that this node has published.
    pub(crate) fn at(position: OrderPosition) -> Self {
        Self { seq: position.seq, judged: Some(position.head), head: Some(position.head) }
    }
}

/// The newest nonce that this node has stored. If the database does not have it before it expires, it has lost nonces
/// (D199).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NonceMark {
    pub(crate) nonce: Uuid,
    pub(crate) expires: SystemTime,
}

/// What this node knows of the batch with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownPlace {
    /// The batch was judged, and is the same one.
    Judged,
    /// This node has not come so far, or too far to remember the batch.
    Unknown,
    /// Another batch had this number when this node judged it.
    Differs,
}

/// Whether the database answers.
#[derive(Debug, Clone)]
pub enum Reachability {
    /// The database was not asked yet.
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
    /// Batches of this node that came second.
    pub races_lost: Counter,
    /// Appends whose answer was lost, and that had to be repeated.
    pub repeated_appends: Counter,
    /// Batches that this node has passed over since its start.
    pub passed_over: Counter,
    /// The newest batches that this node has judged.
    judged: Mutex<BTreeMap<i64, ObjectId>>,
    /// Batches that nodes have passed over.
    passed: ArcSwap<Vec<PassedBatch>>,
    /// The newest comparison of the clocks; `None` before the first one.
    clock: ArcSwapOption<ClockReading>,
    /// Whether the clock was wrong when it was last compared.
    is_clock_wrong: AtomicBool,
    has_gap: AtomicBool,
    halted: ArcSwapOption<String>,
    nonce_mark: Mutex<Option<NonceMark>>,
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
            races_lost: Counter::default(),
            repeated_appends: Counter::default(),
            passed_over: Counter::default(),
            judged: Mutex::default(),
            passed: ArcSwap::default(),
            clock: ArcSwapOption::empty(),
            is_clock_wrong: AtomicBool::new(false),
            has_gap: AtomicBool::new(false),
            halted: ArcSwapOption::empty(),
            nonce_mark: Mutex::default(),
            latency: Histogram::new([
                500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 512_000, 2_000_000,
                10_000_000,
            ]),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id of this run of the program. Two nodes can have the same name by mistake.
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
        let since = *lock(&self.behind_since);
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    pub fn reachability(&self) -> Reachability {
        lock(&self.reachability).clone()
    }

    /// The time at which the database was found again, or first; `None` while it cannot be reached.
    pub fn back_since(&self) -> Option<Instant> {
        match self.reachability() {
            Reachability::Since(since) => Some(since),
            Reachability::Unasked | Reachability::NotSince { .. } => None,
        }
    }

    /// The newest batches that nodes have passed over.
    pub fn passed(&self) -> Arc<Vec<PassedBatch>> {
        self.passed.load_full()
    }

    /// How the clocks of this node and of the database compared last; `None` before the first time.
    pub fn clock(&self) -> Option<ClockReading> {
        self.clock.load().as_deref().copied()
    }

    /// Whether this node's clock was right when it was last compared.
    pub fn check_clock(&self) -> Result<(), WrongNodeClock> {
        self.clock().map_or(Ok(()), |reading| reading.check())
    }

    /// Why this node has stopped, for those who look at the cluster.
    pub fn set_halted(&self, reason: Option<Arc<String>>) {
        self.halted.store(reason);
    }

    pub(crate) fn halted(&self) -> Option<Arc<String>> {
        self.halted.load_full()
    }

    pub(crate) fn has_gap(&self) -> bool {
        self.has_gap.load(Ordering::Relaxed)
    }

    pub(crate) fn note_gap(&self, has_gap: bool) {
        self.has_gap.store(has_gap, Ordering::Relaxed);
    }

    pub(crate) fn note_passed(&self, passed: Vec<PassedBatch>) {
        if **self.passed.load() != passed {
            self.passed.store(Arc::new(passed));
            self.wake();
        }
    }

    pub(crate) fn nonce_mark(&self) -> Option<NonceMark> {
        *lock(&self.nonce_mark)
    }

    pub(crate) fn note_nonce(&self, mark: NonceMark) {
        *lock(&self.nonce_mark) = Some(mark);
    }

    /// Unless there is a newer one.
    pub(crate) fn forget_nonce_mark(&self, mark: Option<NonceMark>) {
        let mut newest = lock(&self.nonce_mark);
        if *newest == mark {
            *newest = None;
        }
    }

    /// Says once if the clock has become wrong, and once if it is right again.
    pub(crate) fn note_clock(&self, reading: ClockReading) {
        let is_wrong = reading.check().is_err();
        self.clock.store(Some(Arc::new(reading)));
        match (is_wrong, self.is_clock_wrong.swap(is_wrong, Ordering::Relaxed)) {
            (true, false) => {
                tracing::error!("{reading}. This node accepts no signed requests until its clock is right")
            }
            (false, true) => tracing::info!("the clock of this node is right again"),
            (true, true) | (false, false) => {}
        }
    }

    /// What this node knows of the batch that the database has in this place.
    pub(crate) fn know(&self, seq: i64, head: Option<ObjectId>) -> KnownPlace {
        if seq == 0 {
            return KnownPlace::Judged;
        }
        let judged = lock(&self.judged);
        match judged.get(&seq) {
            None => KnownPlace::Unknown,
            Some(known) if Some(*known) == head => KnownPlace::Judged,
            Some(_) => KnownPlace::Differs,
        }
    }

    /// Waits until there may be new batches in the database. One waiter at a time.
    pub async fn await_news(&self) {
        self.wake.notified().await;
    }

    /// A future that ends with the next news from now on, for any number of waiters.
    pub(crate) fn hear_news(&self) -> Notified<'_> {
        self.news.notified()
    }

    /// Lets those look who wait for news.
    pub fn wake(&self) {
        self.wake.notify_one();
        self.news.notify_waiters();
    }

    pub(crate) fn note_applied(&self, applied: AppliedBatch) {
        if let Some(head) = applied.judged {
            let mut judged = lock(&self.judged);
            // What came after it is no longer there, if the database was set back.
            judged.split_off(&(applied.seq + 1));
            judged.insert(applied.seq, head);
            if judged.len() > MAX_JUDGED {
                judged.pop_first();
            }
        }
        self.applied.send_replace(applied);
        self.newest.fetch_max(applied.seq, Ordering::Relaxed);
        self.note_lag();
    }

    /// The database said that this is its newest batch. Less than before is possible: a failover can lose batches.
    pub(crate) fn note_newest(&self, seq: i64) {
        self.newest.store(seq, Ordering::Relaxed);
        self.note_lag();
    }

    /// Notes that there is at least this batch.
    pub(crate) fn note_heard(&self, seq: i64) {
        self.newest.fetch_max(seq, Ordering::Relaxed);
        self.note_lag();
    }

    /// Notes that this node offers a batch with this number, and publishes it if it is the one.
    pub(crate) fn note_offered(&self, seq: i64) {
        self.offered.fetch_max(seq, Ordering::Relaxed);
    }

    pub(crate) fn has_offered(&self, seq: i64) -> bool {
        seq <= self.offered.load(Ordering::Relaxed)
    }

    pub(crate) fn note_answer<T>(&self, started: Instant, answer: &Result<T, DatabaseError>) {
        let mut state = lock(&self.reachability);
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
        let mut since = lock(&self.behind_since);
        *since = if self.lag() == 0 { None } else { since.or_else(|| Some(Instant::now())) };
    }
}

// Whether the clock of this node agrees with the database's, which is the clock of the whole order (D194).

/// A question to the database that also asks for its time.
#[derive(Debug)]
pub(crate) struct ClockQuestion(Instant);

/// The readings of both clocks at one moment, as well as that can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    pub node: Timestamp,
    pub database: Timestamp,
    /// How far `node` can be from the moment at which the database read its clock.
    slack: Duration,
}

/// The clock of this node is too far from the database's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}: the operator sets this machine's clock (docs/cluster.md, Clocks)")]
pub struct WrongNodeClock(ClockReading);

impl ClockQuestion {
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// Ends a reading when the answer has just come. The database read its clock at some moment since the question.
    pub(crate) fn end(self, clock: &Clock, shown: SystemTime) -> Result<ClockReading, DatabaseError> {
        let slack = self.0.elapsed();
        let database = database::from_system(shown)?;
        Ok(ClockReading { node: clock.now(), database, slack })
    }
}

impl ClockReading {
    /// How many milliseconds the node's clock is ahead of the database's, about. Less than 0 if it is behind.
    pub fn lead_millis(&self) -> i64 {
        let half = i128::try_from(self.slack.as_nanos() / 2).unwrap_or_default();
        let lead = self.node.nanos_since(self.database) - half;
        i64::try_from(lead / 1_000_000).unwrap_or(if lead < 0 { i64::MIN } else { i64::MAX })
    }

    /// Whether the two are no further apart than they may be. A slow answer accuses no clock.
    pub fn check(&self) -> Result<(), WrongNodeClock> {
        let ahead = self.node.ahead_of(self.database).is_some_and(|lead| lead > MAX_CLOCK_ERROR + self.slack);
        let behind = self.database.ahead_of(self.node).is_some_and(|lag| lag > MAX_CLOCK_ERROR);
        if ahead || behind { Err(WrongNodeClock(*self)) } else { Ok(()) }
    }
}

impl fmt::Display for ClockReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, database, .. } = self;
        let seconds = self.lead_millis().unsigned_abs().div_ceil(1_000);
        let side = if self.lead_millis() < 0 { "behind" } else { "ahead of" };
        write!(
            f,
            "the clock of this node shows {}, {seconds} s {side} the database's, which shows {}",
            node.to_whole_seconds(),
            database.to_whole_seconds()
        )
    }
}
