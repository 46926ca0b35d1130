//! A mirror that also cosigns the checkpoints of its origin's log, and of other logs (D94–D96).

mod cosigning;
mod open;
mod settings;
mod watching;

pub(crate) use self::{
    cosigning::cosign,
    open::open,
    watching::{WatchParts, Watcher},
};
pub use self::{open::WitnessError, settings::WitnessSettings};
