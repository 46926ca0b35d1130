#![allow(clippy::unwrap_used, reason = "a test")]

mod difference;
mod strength;
mod tally;
