//! When a lane lets other threads have its processor (docs/performance.md).
//!
//! A lane that has answered all it knows of lets others go first, before it looks for more. Otherwise it goes on for some
//! milliseconds, as long as its clients ask, and those of another lane wait. A thread that computes does not return such a
//! courtesy. So a lane that waited long for its processor keeps to itself for a while.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use countersign_store::clock::uptime_nanos;

/// Other lanes rarely take that long for what they know of.
pub const LONG: Duration = Duration::from_millis(2);
/// Long enough for the processor to be lent for a small part of the time.
pub const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub struct Courtesy {
    /// In nanoseconds. Only the lane itself uses it.
    none_before: AtomicU64,
}

impl Courtesy {
    /// Lets others go first, if it is time to.
    pub fn offer(&self) {
        let before = Instant::now();
        if self.is_due(before) {
            thread::yield_now();
            self.note(before, Instant::now());
        }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        uptime_nanos(now) >= self.none_before.load(Ordering::Relaxed)
    }

    /// Others had the processor from `before` to `after`.
    pub fn note(&self, before: Instant, after: Instant) {
        if after.duration_since(before) > LONG {
            self.none_before.store(uptime_nanos(after + PAUSE), Ordering::Relaxed);
        }
    }
}
