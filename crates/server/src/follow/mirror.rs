//! A mirror: follows another server over its journal, checks every commit by the rules, and serves what is public
//! (D74–D76).

pub mod exchange;
pub(crate) mod follower;
pub(crate) mod log;
pub mod memory;
pub(crate) mod open;
pub mod state;

pub use crate::follow::mirror::exchange::MirrorSettings;
pub(crate) use crate::follow::mirror::open::{open, promote};
pub use crate::follow::mirror::state::MirrorState;
pub(crate) use crate::follow::mirror::{follower::Follower, log::LogCopier};
