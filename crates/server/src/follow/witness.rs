//! A mirror that also cosigns the checkpoints of its origin's log, and of other logs (D94–D96).

pub(crate) mod cosigning;
pub(crate) mod open;
pub(crate) mod watching;

pub(crate) use crate::follow::witness::watching::{WatchParts, Watcher};
pub use crate::follow::witness::{cosigning::WitnessSettings, open::WitnessError};
pub(crate) use crate::follow::witness::{cosigning::cosign, open::open};
