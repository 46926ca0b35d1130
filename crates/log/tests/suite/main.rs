//! The log behind a real store, in a directory of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod caches;
mod checkpoints;
mod copy;
mod derivation;
mod networks;
mod records;
mod replays;
mod seen;
mod shared;
mod staples;
mod support;
mod tiles;
mod witness;
