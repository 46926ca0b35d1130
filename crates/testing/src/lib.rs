//! What tests share. For core: a repository in a map, people with fixed keys, signers files, and one verb for each
//! decision that applies its change. For servers: PostgreSQL, a proxy that fails on purpose, certificates.

pub mod documents;
pub mod evidence;
pub mod linearizable;
pub mod literals;
pub mod log_reader;
pub mod people;
pub mod postgres;
pub mod proxy;
pub mod repo;
pub mod signing;
pub mod world;

use proptest::test_runner::{Config as ProptestConfig, RngSeed};

pub use crate::{literals::*, people::*, repo::Repo, world::*};

/// Fails unless `text` has every one of `parts`, and shows all of it.
pub fn assert_mentions(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} does not mention {part:?}");
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
