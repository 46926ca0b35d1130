//! What the writer counts, and how values are distributed.

use std::{sync::atomic::AtomicU64, sync::atomic::Ordering, time::Instant};

use crate::error::StoreError;
use crate::machine::clock::{RecentFailure, WriteFailure};

#[derive(Debug)]
pub struct StoreStats {
    /// Commits of each batch that was made durable.
    pub batches: Histogram<9>,
    /// Bytes of new files and of commits, without directories.
    pub stored_bytes: Counter,
    /// Batches that came to nothing.
    pub failures: Counter,
    /// Changes in the queue.
    pub waiting: Counter,
    trouble: RecentFailure,
}

impl Default for StoreStats {
    fn default() -> Self {
        Self {
            batches: Histogram::new([1, 2, 4, 8, 16, 32, 64, 128, 256]),
            stored_bytes: Counter::default(),
            failures: Counter::default(),
            waiting: Counter::default(),
            trouble: RecentFailure::default(),
        }
    }
}

impl StoreStats {
    pub fn commits(&self) -> u64 {
        self.batches.sum()
    }

    /// Why the newest change could not be stored, a moment ago.
    pub fn failing(&self, now: Instant) -> Option<WriteFailure> {
        self.trouble.recent(now)
    }

    pub(crate) fn note_published(&self, commits: usize, stored_bytes: u64) {
        self.batches.note(commits as u64);
        self.stored_bytes.add(stored_bytes);
        self.trouble.note(None, Instant::now());
    }

    pub(crate) fn note_failed(&self, error: &StoreError) {
        self.failures.add(1);
        self.trouble.note(Some(WriteFailure::of(error.is_disk_full())), Instant::now());
    }
}

/// A number of what happened, or of what there is.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Returns how many there were before.
    pub fn add(&self, more: u64) -> u64 {
        self.0.fetch_add(more, Ordering::Relaxed)
    }

    pub fn subtract(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    pub fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

// How values are distributed, for values that are noted now and then.

/// Counts of values by upper bounds; what is above all of them is counted last.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: [u64; N],
    counts: [AtomicU64; N],
    above: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    pub fn new(bounds: [u64; N]) -> Self {
        Self {
            bounds,
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            above: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    pub fn note(&self, value: u64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound);
        let count = bucket.map_or(&self.above, |bucket| &self.counts[bucket]);
        count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Each bound with the count of its own.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        self.bounds.into_iter().zip(counts)
    }

    /// The count of what is above all bounds.
    pub fn above(&self) -> u64 {
        self.above.load(Ordering::Relaxed)
    }

    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}
