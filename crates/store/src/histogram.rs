//! How values are distributed, for values that are noted now and then.

use std::sync::atomic::{AtomicU64, Ordering};

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
        let place = self.bounds.iter().position(|bound| value <= *bound);
        let count = place.map_or(&self.above, |place| &self.counts[place]);
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
