//! The tests of core, by the chapters of its code. What they share is in `countersign-testing`.

#![allow(clippy::unwrap_used, reason = "a test")]

mod documents;
mod log;
mod proof;
mod rules;
mod values;
mod vectors;
