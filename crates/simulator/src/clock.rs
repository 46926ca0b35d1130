//! A clock that a run sets.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use countersign_core::values::time::Timestamp;
use countersign_store::clock::Clock;

#[derive(Debug, Clone)]
pub struct SimClock(Arc<AtomicI64>);

impl Default for SimClock {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(1_770_000_000)))
    }
}

impl SimClock {
    pub fn now(&self) -> Timestamp {
        Timestamp::from_unix_seconds(self.0.load(Ordering::Relaxed)).expect("a year of this century")
    }

    /// Forwards, or back.
    pub fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    pub fn clock(&self) -> Clock {
        let this = self.clone();
        Clock::new(move || this.now())
    }
}
