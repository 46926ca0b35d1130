//! How a mirror is doing: shared by the task that follows, health checks, metrics and pages.

use std::sync::{Arc, Mutex, atomic::AtomicBool, atomic::Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use countersign_store::journal::{JournalEntry, read::JournalError, read::JournalReader};
use countersign_store::machine::clock::lock;
use thiserror::Error;
use tokio::sync::watch;

use crate::follow::mirror::exchange::OriginAddress;
use crate::follow::mirror::memory::{FollowStop, MemoryError, MirrorMemory};
use crate::metrics::Counter;

/// A request that a mirror does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("this is a mirror of {origin}. It accepts no signed requests: send them to {origin}")]
pub struct NotTheOrigin {
    pub origin: String,
}

#[derive(Debug)]
pub struct MirrorState {
    pub origin: OriginAddress,
    pub max_lag: Duration,
    memory: MirrorMemory,
    refusal: ArcSwapOption<FollowStop>,
    contact: Mutex<OriginContact>,
    /// Counts the operator's decisions to try again.
    pub(crate) resumed: watch::Sender<u64>,
    is_empty: AtomicBool,
    /// Whether the mirror began with nothing, and has not had everything since.
    is_first_copy: AtomicBool,
    pub received_bytes: Counter,
    /// Commits since the start.
    pub followed: Counter,
    pub failures: Counter,
}

#[derive(Debug, Clone)]
struct OriginContact {
    /// When the origin last said that it has nothing more; at first, the start.
    up_to_date: Instant,
    /// Whether the origin has said so since this server started.
    has_answered: bool,
    is_origin_behind: bool,
    /// Why it failed the last time.
    failure: Option<String>,
}

impl OriginContact {
    fn at(up_to_date: Instant) -> Self {
        Self { up_to_date, has_answered: false, is_origin_behind: false, failure: None }
    }
}

impl MirrorState {
    pub fn new(
        origin: OriginAddress,
        max_lag: Duration,
        memory: MirrorMemory,
        is_empty: bool,
    ) -> Result<Self, MemoryError> {
        let refusal = memory.refusal()?.map(Arc::new);
        Ok(Self {
            origin,
            max_lag,
            memory,
            refusal: ArcSwapOption::new(refusal),
            contact: Mutex::new(OriginContact::at(Instant::now())),
            resumed: watch::Sender::new(0),
            is_empty: AtomicBool::new(is_empty),
            is_first_copy: AtomicBool::new(is_empty),
            received_bytes: Counter::default(),
            followed: Counter::default(),
            failures: Counter::default(),
        })
    }

    pub fn refusal(&self) -> Option<Arc<FollowStop>> {
        self.refusal.load_full()
    }

    /// The time since the mirror last had everything that the origin had.
    pub fn lag(&self, now: Instant) -> Duration {
        now.saturating_duration_since(lock(&self.contact).up_to_date)
    }

    /// Whether the origin can be asked for more than its journal.
    pub(crate) fn is_in_contact(&self) -> bool {
        let contact = lock(&self.contact);
        contact.has_answered && contact.failure.is_none() && self.refusal.load().is_none()
    }

    /// Checks that the mirror is ready, and says why if it is not.
    pub fn check(&self, now: Instant) -> Result<(), String> {
        let (origin, lag) = (&self.origin, self.lag(now));
        if let Some(refusal) = self.refusal() {
            return Err(format!(
                "this mirror has stopped following {origin}: {}. It serves what it had until then. When the operator has \
                 found out why, `countersign admin mirror resume` makes it try again",
                refusal.reason
            ));
        }
        if self.is_empty.load(Ordering::Relaxed) {
            return Err(format!("this mirror has received nothing from {origin} yet"));
        }
        // What it shows until then looks as if the rest had never happened.
        if self.is_first_copy.load(Ordering::Relaxed) {
            return Err(format!("this mirror is still copying {origin} for the first time"));
        }
        if lag <= self.max_lag {
            return Ok(());
        }
        let (seconds, contact) = (lag.as_secs(), lock(&self.contact));
        if contact.is_origin_behind {
            return Err(format!(
                "for {seconds} seconds now, {origin} has not had the newest commits of this mirror"
            ));
        }
        let because = contact.failure.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        Err(format!("this mirror has not been up to date with {origin} for {seconds} seconds{because}"))
    }

    pub fn refuse_signed(&self) -> NotTheOrigin {
        NotTheOrigin { origin: self.origin.to_string() }
    }

    /// The operator's decision to try again. False if the mirror follows anyway.
    pub fn resume(&self) -> Result<bool, MemoryError> {
        let was_refused = self.memory.forget_refusal()?;
        let was_refused = self.refusal.swap(None).is_some() || was_refused;
        self.resumed.send_modify(|count| *count += 1);
        Ok(was_refused)
    }

    /// Stops following, also after a restart. If the refusal cannot be written to disk, it holds only for this process.
    pub(crate) fn refuse(&self, refusal: FollowStop) {
        let written = self.memory.set_refusal(&refusal);
        let refusal = Arc::new(refusal);
        self.refusal.store(Some(Arc::clone(&refusal)));
        let FollowStop { origin, reason, ours, theirs, .. } = &*refusal;
        tracing::error!(
            origin,
            reason,
            ours,
            theirs,
            "the mirror stops following and serves what it has; see docs/mirror.md. `countersign admin mirror resume` \
             makes it try again"
        );
        if let Err(error) = written {
            let source = std::error::Error::source(&error).map(tracing::field::display);
            tracing::error!(%error, source, "after a restart the mirror will follow again");
        }
    }

    pub(crate) fn note_first_commit(&self) {
        self.is_empty.store(false, Ordering::Relaxed);
    }

    /// The origin had nothing more at this time.
    pub(crate) fn note_up_to_date(&self, at: Instant) {
        self.is_first_copy.store(false, Ordering::Relaxed);
        *lock(&self.contact) = OriginContact { has_answered: true, ..OriginContact::at(at) };
    }

    /// Notes that the origin is behind the mirror, and returns whether that is new.
    pub(crate) fn note_origin_behind(&self) -> bool {
        !std::mem::replace(&mut lock(&self.contact).is_origin_behind, true)
    }

    pub(crate) fn note_failure(&self, reason: &str) {
        self.failures.add(1);
        lock(&self.contact).failure = Some(reason.to_owned());
    }
}

// The commits of a journal in groups, which the store makes durable together.

/// One round of fsync for so many commits. Two groups are in memory at most: one in the store, and one being read.
const GROUP_ENTRIES: usize = 256;
const GROUP_BYTES: usize = 4 << 20;
/// What a file takes in memory beside its path and content, about. A short path alone is far less than that.
const FILE_OVERHEAD: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct EntryGroup {
    entries: Vec<JournalEntry>,
    bytes: usize,
}

impl EntryGroup {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.entries.len() < GROUP_ENTRIES && self.bytes < GROUP_BYTES
    }

    /// Takes what the reader has, as far as there is room.
    pub(crate) fn fill(&mut self, reader: &mut JournalReader) -> Result<(), JournalError> {
        while self.has_room() {
            let Some(entry) = reader.next()? else { break };
            self.bytes += entry.bytes(FILE_OVERHEAD);
            self.entries.push(entry);
        }
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Vec<JournalEntry> {
        self.bytes = 0;
        std::mem::take(&mut self.entries)
    }
}
