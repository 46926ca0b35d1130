//! What tests share. For core: a repository in a map, people with fixed keys, signers files, and one verb for each
//! decision that applies its change. For servers: PostgreSQL, a proxy that fails on purpose, certificates.

pub mod documents;
pub mod evidence;
pub mod fido;
pub mod git;
pub mod linearizable;
pub mod literals;
pub mod log_reader;
pub mod people;
pub mod postgres;
pub mod proxy;
pub mod random;
pub mod repo;
pub mod signing;
pub mod world;

use std::{fs, path::Path, thread, time::Duration, time::Instant};

use proptest::test_runner::{Config as ProptestConfig, RngSeed};
use tempfile::TempDir;

pub use crate::{literals::*, people::*, repo::Repo, world::*};

/// Fails unless `text` has every one of `parts`, and shows all of it.
pub fn assert_mentions(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} does not mention {part:?}");
    }
}

/// Waits until something is so, and looks again every few milliseconds. A test that would hang fails instead.
#[track_caller]
pub fn await_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it does not happen: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A temporary directory, in memory where the system has such a place.
pub fn memory_dir() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a temporary directory")
}

/// Copies a directory with everything in it.
pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("its entries");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file that can be copied");
        }
    }
}

/// A configuration with which property tests draw the same cases on every run.
pub fn steady() -> ProptestConfig {
    ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A configuration with fewer cases, if each one takes many signatures.
pub fn few(config: ProptestConfig, cases: u32) -> ProptestConfig {
    ProptestConfig { cases, ..config }
}
