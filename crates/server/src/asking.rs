//! Asks witnesses to cosign the checkpoints of this server's log (D93).

mod first_answers;
pub mod settings;
pub mod stats;
mod taking;
mod task;

pub(crate) use self::{first_answers::Restored, taking::take_cosignatures, task::AskedWitnesses};
pub use self::{
    settings::{AskedWitness, BadWitnessUrl},
    stats::CosigningStats,
};
