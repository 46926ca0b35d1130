//! Explanations for people: how far a release or proposed signers have come, what a proposed signers file changes, what
//! a signers file withstands, and how signers are named. The client and the web pages show them; no rule depends on
//! them.

pub mod describe;
pub mod difference;
pub mod drill;
pub mod incident;
pub mod lockout;
pub mod log_change;
pub mod log_strength;
pub mod progress;
pub mod reproduction;
pub mod strength;
pub mod words;
