//! The tests of the store, by the rooms of its code.

#![allow(clippy::unwrap_used, reason = "a test")]

mod audit;
mod budget;
mod catalogue;
mod catalogue_keys;
mod disk;
mod fold;
mod journal;
mod nonces;
mod objects;
mod snapshot;
mod store;
mod support;
mod tree;
