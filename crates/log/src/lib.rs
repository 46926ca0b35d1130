//! The transparency log of a server (D82–D90): a thread behind the store derives a leaf of each commit, signs
//! checkpoints, and keeps what proofs are made of. Nothing here knows HTTP, and no change waits for it.

mod cache;
mod checkpoints;
mod derivation;
mod error;
mod keeper;
mod log;
mod recent;
mod records;
mod seen;
mod settings;
mod staples;
mod state;
mod tiles;
mod witness;

pub use crate::checkpoints::{CheckpointRound, CosignError};
pub use crate::error::{AcceptLossError, LogError, LogRefusal, TakeError};
pub use crate::keeper::{CheckpointFiles, CheckpointKeeper, KeepError, KeptNotes};
pub use crate::recent::{CheckpointMinute, RECENT_MINUTES, RecentLog};
pub use crate::settings::{CheckpointSigner, LogOptions, MAX_WAITING, MlDsaSecret};
pub use crate::tiles::{NoTile, PackedBundles};
pub use crate::witness::{
    AskedTooOften, CosignRefusal, LogReplay, LogWitness, TakenList, UntakenLog, WitnessMemoryError,
    WitnessStop, WitnessedFigures, WitnessedLog, forget_stops,
};
pub use crate::{log::LogCopy, log::TransparencyLog, staples::NoStaple, state::LogFigures};
