//! The log of all commits at its start (D87). `countersign_log` does the work; `routes::log` answers for it.

use std::{io, sync::Arc};

use countersign_cluster::{checkpoints::SharedCheckpoints, database::Database};
use countersign_log::{CheckpointFiles, CheckpointKeeper, LogError, LogOptions, TransparencyLog};
use countersign_store::{Store, data_dir::DataDir};
use thiserror::Error;

use crate::{
    asking::{AskedWitness, BadWitnessUrl},
    config::LogSettings,
};

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

pub(crate) struct StartedLog {
    pub(crate) log: Arc<TransparencyLog>,
    /// The witnesses to ask.
    pub(crate) asked: Vec<AskedWitness>,
}

/// Begins to follow the store. Nothing waits for it. Nodes share a database, and with it the checkpoints.
pub(crate) fn start(
    store: &Store,
    data_dir: &DataDir,
    database: Option<Database>,
    settings: LogSettings,
) -> Result<StartedLog, LogStartError> {
    let LogSettings { signer, checkpoint_every, heartbeat_every, witnesses, .. } = settings;
    let dir = data_dir.log();
    let asked = witnesses.as_ref().map(AskedWitness::list).transpose()?.unwrap_or_default();
    let keeper: Box<dyn CheckpointKeeper> = match database {
        None => Box::new(CheckpointFiles::new(&dir)),
        Some(database) => Box::new(SharedCheckpoints::new(database, &dir)?),
    };
    let options = LogOptions {
        keeper,
        dir,
        signer: signer.ok_or(LogStartError::NoKey)?,
        checkpoint_every,
        heartbeat_every,
        policy: witnesses,
        waits_for_witnesses: !asked.is_empty(),
    };
    Ok(StartedLog { log: Arc::new(TransparencyLog::start(store, options)?), asked })
}
