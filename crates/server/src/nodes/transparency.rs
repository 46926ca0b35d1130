//! The log of all commits at its start (D87). `countersign_log` does the work; `routes::log` answers for it.

use std::{io, sync::Arc};

use countersign_cluster::{checkpoints::SharedCheckpoints, database::Database};
use countersign_core::values::bounds::NOTE_BYTES;
use countersign_log::{CheckpointFiles, CheckpointKeeper, LogError, LogOptions, TransparencyLog};
use countersign_store::{Store, machine::data_dir::DataDir, machine::disk};
use thiserror::Error;

use crate::{nodes::asking::AskedWitness, nodes::asking::BadWitnessUrl, operate::config::LogSettings};

#[derive(Debug, Error)]
pub enum LogStartError {
    #[error("the log has no key: the program that starts the server must read `log.key_file` first")]
    NoKey,
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Witness(#[from] BadWitnessUrl),
    #[error("the log cannot speak to the database")]
    Runtime(#[from] io::Error),
}

/// The newest checkpoint in a mirror's copy of a log, before the mirror becomes a server of its own.
pub(crate) fn read_copied(data_dir: &DataDir) -> Option<Vec<u8>> {
    let path = data_dir.log_copy().join(CheckpointFiles::NEWEST);
    disk::read(&path, NOTE_BYTES as u64).ok().flatten()
}

pub(crate) struct StartedLog {
    pub(crate) log: Arc<TransparencyLog>,
    /// The witnesses to ask.
    pub(crate) asked: Vec<AskedWitness>,
}

/// Begins to follow the store. Nothing waits for it. Nodes share a database, and with it the checkpoints. `copied` is what
/// [`read_copied`] gave.
pub(crate) fn start(
    store: &Store,
    data_dir: &DataDir,
    database: Option<Database>,
    settings: LogSettings,
    copied: Option<Vec<u8>>,
) -> Result<StartedLog, LogStartError> {
    let LogSettings { signer, checkpoint_every, heartbeat_every, witnesses, .. } = settings;
    let dir = data_dir.log();
    let signer = signer.ok_or(LogStartError::NoKey)?;
    let origin = signer.key().name();
    let asked = witnesses.as_ref().map(|policy| AskedWitness::list(policy, origin)).transpose()?;
    let asked = asked.unwrap_or_default();
    let keeper: Box<dyn CheckpointKeeper> = match database {
        None => Box::new(CheckpointFiles::new(&dir)),
        Some(database) => Box::new(SharedCheckpoints::new(database, &dir)?),
    };
    let options = LogOptions {
        keeper,
        dir,
        signer,
        checkpoint_every,
        heartbeat_every,
        policy: witnesses,
        waits_for_witnesses: !asked.is_empty(),
        copied,
    };
    Ok(StartedLog { log: Arc::new(TransparencyLog::start(store, options)?), asked })
}
