//! Visits every state that the requests of a small world can lead to, with the real decisions of `core`, and checks at
//! each state and each step what must hold there (docs/assurance.md).
//!
//! What must hold is said in `invariants`, in words of its own: it reads the stored JSON and verifies signatures
//! itself, so that a mistake in a rule is not repeated in its check.

pub mod action;
pub mod contents;
pub mod decisions;
pub mod invariants;
pub mod judge;
pub mod liveness;
pub mod logged;
pub mod requests;
pub mod roles;
pub mod search;
pub mod symmetry;
pub mod view;
pub mod world;
pub mod worlds;
