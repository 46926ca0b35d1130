//! The transparency log of a server (D82–D90): a thread behind the store derives a leaf of each commit, signs
//! checkpoints, and keeps what proofs are made of. Nothing here knows HTTP, and no change waits for it.

mod cache;
mod checkpoints;
mod copy;
mod error;
mod follower;
mod keeper;
mod log;
mod recount;
mod seen;
mod settings;
mod signer;
mod staples;
mod state;
mod tiles;
mod witness;

pub use crate::{
    checkpoints::{CheckpointRound, CosignError},
    copy::LogCopy,
    error::{AcceptLossError, LogError, LogRefusal, TakeError},
    keeper::{CheckpointFiles, CheckpointKeeper, KeepError, KeptNotes},
    log::TransparencyLog,
    settings::{LogOptions, MAX_WAITING},
    signer::LogSigner,
    staples::NoStaple,
    state::LogFigures,
    tiles::NoTile,
    witness::{
        CosignRefusal, CosignStep, LogReplay, LogWitness, StepHook, WitnessMemoryError, WitnessSigner,
        WitnessStop, WitnessedFigures, WitnessedLog, forget_stops,
    },
};
