//! The log behind a real store, in a directory of its own.

mod caches;
mod checkpoints;
mod derivation;
mod staples;
mod support;
mod tiles;
