//! The server's clock. Tests put a fixed one in its place.

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::http::HeaderValue;
use countersign_core::time::Timestamp;

/// Of the year 9999.
const LAST_SECOND: i64 = 253_402_300_799;

/// The time of this machine; `None` before 1970.
pub(crate) fn since_1970() -> Option<Duration> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok()
}

/// The `Date` of an answer. A machine whose clock is off the calendar of that header has none, and sends none.
pub(crate) fn http_date() -> Option<HeaderValue> {
    write_date(since_1970()?.as_secs())
}

fn write_date(seconds: u64) -> Option<HeaderValue> {
    i64::try_from(seconds).ok().filter(|seconds| *seconds <= LAST_SECOND)?;
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    HeaderValue::from_str(&date).ok()
}

#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_written_as_far_as_its_calendar_goes() {
        assert_eq!(write_date(784_887_151).unwrap(), "Tue, 15 Nov 1994 08:12:31 GMT");
        assert_eq!(write_date(0).unwrap(), "Thu, 01 Jan 1970 00:00:00 GMT");
        let last = u64::try_from(LAST_SECOND).unwrap();
        assert_eq!(write_date(last).unwrap(), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(write_date(last + 1), None);
    }
}
