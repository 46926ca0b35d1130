//! What server, client and mirror must agree on: formats, keys, quorum, decisions and verification.
//!
//! Pure: no I/O, no clock, no randomness, no async. Whatever a decision needs is a parameter of it.

pub mod digest;
pub mod key;
pub mod path;
pub mod snapshot;
pub mod time;
pub mod wire;
