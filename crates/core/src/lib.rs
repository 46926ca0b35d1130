//! What server, client and mirror must agree on: formats, keys, quorum, decisions and verification.
//!
//! Pure: no I/O, no clock, no randomness, no async. A decision gets everything it needs as a parameter. Read the chapters
//! in this order: `values`, `documents`, `rules`, `log`, `proof`. Each uses only the ones before it.

pub mod documents;
pub mod log;
pub mod proof;
pub mod rules;
pub mod values;
