//! A mirror: follows another server over its journal, checks every commit by the rules, and serves what is public
//! (D74–D76).

pub mod address;
pub(crate) mod client;
mod divergence;
mod exchange;
mod follower;
mod group;
mod log;
pub mod memory;
mod open;
pub mod settings;
pub mod state;

pub(crate) use self::{
    follower::Follower,
    log::LogCopier,
    open::{OpenedMirror, open, promote},
};
pub use self::{
    open::MirrorError,
    settings::MirrorSettings,
    state::{MirrorState, MirrorTrouble},
};
