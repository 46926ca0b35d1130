//! The server's clock. Tests put a fixed one in its place.

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use countersign_core::values::time::Timestamp;

/// The last second of the year 9999.
pub const LAST_SECOND: i64 = 253_402_300_799;

/// The time of this machine; `None` before 1970.
pub fn since_1970() -> Option<Duration> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok()
}

#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    steady: Arc<dyn Fn() -> Instant + Send + Sync>,
}

impl Clock {
    /// The clock of this machine. Before 1970, which Git's commits cannot have, it stands still; from the year 10000 on,
    /// which timestamps cannot have, as well (D50).
    pub fn system() -> Self {
        Self::new(|| {
            let since = since_1970().unwrap_or_default();
            let nanos = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
            Timestamp::from_unix_nanos(nanos).unwrap_or_else(|_| {
                Timestamp::from_unix_seconds(LAST_SECOND).expect("the year 9999 has a last second")
            })
        })
    }

    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), steady: Arc::new(Instant::now) }
    }

    /// Sets another measure of how much time has passed.
    #[must_use]
    pub fn with_steady(mut self, steady: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        self.steady = Arc::new(steady);
        self
    }

    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// A time that never goes back, whatever the clock does.
    pub(crate) fn steady(&self) -> Instant {
        (self.steady)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A clock that only goes forwards: nanoseconds since about the start of the process.
pub fn uptime_nanos(at: Instant) -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // In 64 bits, which last for centuries: every request passes here.
    let since = at.saturating_duration_since(*START);
    since.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(since.subsec_nanos()))
}
