//! A mirror: follows another server over its journal, checks every commit by the rules, and serves what is public
//! (D74–D76).

pub mod exchange;
pub(crate) mod follower;
pub(crate) mod log;
pub mod memory;
pub(crate) mod open;
pub mod state;

pub(crate) use crate::follow::mirror::open::{OpenedMirror, open, promote};
pub use crate::follow::mirror::state::{MirrorState, MirrorTrouble};
pub use crate::follow::mirror::{exchange::MirrorSettings, open::MirrorError};
pub(crate) use crate::follow::mirror::{follower::Follower, log::LogCopier};
