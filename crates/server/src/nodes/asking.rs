//! Asks witnesses to cosign the checkpoints of this server's log (D93).

pub mod settings;
pub(crate) mod task;

pub use crate::nodes::asking::settings::{AskedWitness, BadWitnessUrl, CosigningStats};
pub(crate) use crate::nodes::asking::task::{AskedWitnesses, Restored, take_cosignatures};
