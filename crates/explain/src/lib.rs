//! Explanations for people: what a proposed signers file changes, and what a signers file withstands. The client and the
//! web pages show them; no rule depends on them.

pub mod difference;
pub mod signers;
pub mod strength;
