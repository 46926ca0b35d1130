//! What server, client and mirror must agree on: formats, keys, quorum, decisions and verification.
//!
//! Pure: no I/O, no clock, no randomness, no async. Whatever a decision needs is a parameter of it. Four chapters, each
//! of which uses only those before it.

pub mod documents;
pub mod proof;
pub mod rules;
pub mod values;
