//! The transparency log of a server (D82–D90): a thread behind the store derives a leaf of each commit, signs
//! checkpoints, and keeps what proofs are made of. Nothing here knows HTTP, and no change waits for it.

mod cache;
mod checkpoints;
mod error;
mod follower;
mod keeper;
mod log;
mod recount;
mod settings;
mod signer;
mod staples;
mod state;
mod tiles;

pub use crate::{
    checkpoints::{CheckpointRound, CosignError},
    error::{LogError, LogRefusal},
    keeper::{CheckpointFiles, CheckpointKeeper, KeepError, KeptNotes},
    log::TransparencyLog,
    settings::{LogOptions, MAX_WAITING},
    signer::LogSigner,
    staples::NoStaple,
    state::LogFigures,
    tiles::{NoTile, TileName},
};
