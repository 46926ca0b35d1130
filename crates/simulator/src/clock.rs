//! A clock that a run sets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use countersign_core::values::time::Timestamp;
use countersign_store::clock::Clock;

#[derive(Debug, Clone)]
pub struct SimClock {
    seconds: Arc<AtomicI64>,
    passed: Arc<AtomicU64>,
}

impl Default for SimClock {
    fn default() -> Self {
        Self { seconds: Arc::new(AtomicI64::new(1_770_000_000)), passed: Arc::default() }
    }
}

impl SimClock {
    pub fn now(&self) -> Timestamp {
        Timestamp::from_unix_seconds(self.seconds.load(Ordering::Relaxed)).expect("a year of this century")
    }

    /// Shows another time, forwards or back. No time passes.
    pub fn set_by(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Forwards, or back.
    pub fn pass(&self, seconds: i64) {
        self.set_by(seconds);
        self.passed.fetch_add(u64::try_from(seconds).unwrap_or_default(), Ordering::Relaxed);
    }

    /// The clock that a process reads. Time that passes is measured as well, and never goes back.
    pub fn clock(&self) -> Clock {
        let (this, steady) = (self.clone(), Arc::clone(&self.passed));
        let start = Instant::now();
        Clock::new(move || this.now())
            .with_steady(move || start + Duration::from_secs(steady.load(Ordering::Relaxed)))
    }
}
