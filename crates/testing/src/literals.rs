//! Paths and times that a test writes as text.

use countersign_core::values::{path::RepoPath, time::Timestamp};

pub fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).expect("the test's own path")
}

pub fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("the test's own time")
}

/// Shifts `time` by some nanoseconds.
pub fn shifted(time: Timestamp, nanos: i128) -> Timestamp {
    let since_epoch = time.nanos_since(at("1970-01-01T00:00:00Z"));
    Timestamp::from_unix_nanos(since_epoch + nanos).expect("a year before 9999")
}

pub fn shifted_seconds(time: Timestamp, seconds: i128) -> Timestamp {
    shifted(time, seconds * 1_000_000_000)
}
