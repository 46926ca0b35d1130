//! The server's clock. Tests put a fixed one in its place.

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use countersign_core::time::Timestamp;

#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    pub fn system() -> Self {
        Self::new(|| {
            let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
            let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
            Timestamp::from_unix_nanos(nanos).expect("the clock is set before the year 10000")
        })
    }

    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A clock that only goes forwards: nanoseconds since about the start of the process.
pub(crate) fn uptime_nanos(at: Instant) -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // In 64 bits, which last for centuries: every request passes here.
    let since = at.saturating_duration_since(*START);
    since.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(since.subsec_nanos()))
}
