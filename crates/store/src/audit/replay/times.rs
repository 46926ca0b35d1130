//! How far the times of a request, its commit and its files may be apart.

use std::{ops::RangeInclusive, time::Duration};

use countersign_core::{
    rules::auth::{MAX_CARRY, MAX_SET_BACK},
    values::time::Timestamp,
};

/// How far the time that a decision wrote into its files may be from the time of its commit. They are the same (D191), but
/// for an index that was written before, and for commits of servers that read their clock twice.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10 * 60);
/// The longest that a server may take to fetch a signers file (D50). A server ends its fetches by then and accepts no
/// setting above it, since a check could not tell such a commit from one that no server made.
pub const MAX_FETCH: Duration = Duration::from_secs(60 * 60);
/// The shortest expiry of a registration that a server can be configured to have (D15).
pub const MIN_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the clock may have shown when a request arrived that was carried out at `time` (D192).
pub(crate) fn around(time: Timestamp) -> RangeInclusive<Timestamp> {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    shift(time, -seconds(MAX_CARRY))..=shift(time, seconds(MAX_SET_BACK))
}

/// The last moment of a second.
pub(crate) fn end_of(second: Timestamp) -> Timestamp {
    shift(second, 1)
}

/// A time that leaves the calendar stays where it was.
pub(crate) fn shift(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(time.unix_seconds().saturating_add(seconds)).unwrap_or(time)
}
