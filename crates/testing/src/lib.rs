//! What tests share. For core: a repository in a map, people with fixed keys, signers files, and one verb for each
//! decision that applies its change. For servers: PostgreSQL, a proxy that fails on purpose, certificates.

pub mod documents;
pub mod evidence;
pub mod fido;
pub mod linearizable;
pub mod literals;
pub mod log_reader;
pub mod people;
pub mod postgres;
pub mod proxy;
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

/// Random numbers from a seed, the same on every run: of a linear congruential generator, or SplitMix64.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
    draw: fn(&mut u64) -> u64,
}

impl Random {
    /// A linear congruential generator. It gives the 31 upper bits, which are good enough for tests.
    pub fn congruential(seed: u64) -> Self {
        let draw = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *state >> 33
        };
        Self { state: seed, draw }
    }

    /// SplitMix64, which gives 64 bits.
    pub fn split_mix(seed: u64) -> Self {
        let draw = |state: &mut u64| {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Self { state: seed, draw }
    }

    pub fn draw(&mut self) -> u64 {
        (self.draw)(&mut self.state)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// A place in a list of this length.
    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("it is below a length")
    }
}
