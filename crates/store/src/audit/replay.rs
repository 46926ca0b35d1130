//! Replaying a commit: whether the rules, in the state before it, give exactly what it changed.
//!
//! The message says what a commit claims to be. From that and from what the commit stored, the request is put together
//! again, and the same decision is run that the server ran. Whatever it does not give, byte for byte, is a violation:
//! nothing here knows any rule of its own about what may change.

mod check;
pub mod nonces;
mod proposals;
mod rerun;
mod violation;

pub use crate::audit::replay::violation::{MAX_FETCH, MIN_EXPIRY, ReplayFault, Violation};
pub use crate::audit::replay::{check::CommitStep, rerun::Replay, rerun::SpeaksFor};
