//! What the tests of core share: a repository in a map, people with fixed keys, signers files, and one verb for
//! each decision that applies its change.

// Every test binary uses its own part of this.
#![allow(dead_code, unused_imports)]

pub(crate) mod documents;
pub(crate) mod evidence;
pub(crate) mod people;
pub(crate) mod replaying;
pub(crate) mod repo;
pub(crate) mod revocation;
pub(crate) mod signing;
pub(crate) mod world;

use countersign_core::{path::RepoPath, time::Timestamp};

use proptest::test_runner::{Config as ProptestConfig, RngSeed};

pub(crate) use people::*;
pub(crate) use repo::Repo;
pub(crate) use world::*;

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).expect("the test's own path")
}

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("the test's own time")
}

/// `time` and some nanoseconds more, or less.
pub(crate) fn shifted(time: Timestamp, nanos: i128) -> Timestamp {
    let since_epoch = time.nanos_since(at("1970-01-01T00:00:00Z"));
    Timestamp::from_unix_nanos(since_epoch + nanos).expect("a year before 9999")
}

pub(crate) fn shifted_seconds(time: Timestamp, seconds: i128) -> Timestamp {
    shifted(time, seconds * 1_000_000_000)
}

/// Fails unless `text` has every one of `parts`, and shows all of it.
pub(crate) fn assert_mentions(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} does not mention {part:?}");
    }
}

/// Property tests draw the same cases on every run.
pub(crate) fn steady() -> ProptestConfig {
    ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Fewer cases, where each one takes many signatures.
pub(crate) fn few(config: ProptestConfig, cases: u32) -> ProptestConfig {
    ProptestConfig { cases, ..config }
}
