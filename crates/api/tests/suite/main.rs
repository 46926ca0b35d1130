#![allow(clippy::unwrap_used, reason = "a test")]

mod answer;
mod bodies;
mod catalogue;
mod event;
mod examples;
mod history;
mod offline;
