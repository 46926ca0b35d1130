#![allow(clippy::unwrap_used, reason = "a test")]

mod caps;
mod corpus;
mod model;
mod overview;
mod overview_lists;
mod panics;
mod reads;
mod releases;
