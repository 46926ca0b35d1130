//! Times as the database has them: microseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use countersign_core::values::time::Timestamp;

/// The time for the database, rounded up if its microseconds are too coarse.
pub(crate) fn to_system(time: Timestamp) -> SystemTime {
    let Ok(epoch) = Timestamp::from_unix_seconds(0) else { return UNIX_EPOCH };
    let micros = time.nanos_since(epoch).div_euclid(1_000) + i128::from(time.nanos_since(epoch) % 1_000 != 0);
    let distance = Duration::from_micros(u64::try_from(micros.unsigned_abs()).unwrap_or(u64::MAX));
    if micros < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

pub(crate) fn from_system(time: SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(UNIX_EPOCH);
    let nanos = since.map_or_else(|error| -signed(error.duration()), signed);
    Timestamp::from_unix_nanos(nanos).ok()
}

fn signed(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}
