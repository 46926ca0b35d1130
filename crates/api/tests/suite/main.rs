#![allow(clippy::unwrap_used, reason = "a test")]

mod answer;
mod bodies;
mod catalogue;
mod event;
mod event_stream;
mod examples;
mod history;
mod offline;
mod pending;
mod schemas;
mod state;
