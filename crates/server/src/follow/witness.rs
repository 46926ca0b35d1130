//! A mirror that also cosigns the checkpoints of its origin's log, and of other logs (D94–D96).

pub(crate) mod open;
pub(crate) mod watching;

pub use crate::follow::witness::open::{WitnessError, WitnessSettings};
pub(crate) use crate::follow::witness::{open::cosign, open::open, watching::WatchParts, watching::Watcher};
