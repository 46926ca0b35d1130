#![allow(clippy::unwrap_used, reason = "a test")]

mod describe;
mod difference;
mod drill;
mod files;
mod incident;
mod lockout;
mod logs;
mod progress;
mod strength;
mod words;
