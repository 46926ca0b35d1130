#![allow(clippy::unwrap_used, reason = "a test")]

mod assets;
mod checksums;
mod fetch;
mod forges;
mod messages;
mod send;
mod support;
mod user;
