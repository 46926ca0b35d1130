//! The log of all commits at its start (D87). `countersign_log` does the work; `routes::log` answers for it.

use std::sync::Arc;

use countersign_log::{CheckpointFiles, LogError, LogOptions, TransparencyLog};
use countersign_store::{Store, data_dir::DataDir};
use thiserror::Error;

use crate::config::LogSettings;

#[derive(Debug, Error)]
pub enum LogStartError {
    #[error("the log has no key: the program that starts the server must read `log.key_file` first")]
    NoKey,
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Begins to follow the store. Nothing waits for it.
pub(crate) fn start(
    store: &Store,
    data_dir: &DataDir,
    settings: LogSettings,
) -> Result<Arc<TransparencyLog>, LogStartError> {
    let LogSettings { signer, checkpoint_every, heartbeat_every, witnesses, .. } = settings;
    let dir = data_dir.log();
    let options = LogOptions {
        keeper: Box::new(CheckpointFiles::new(&dir)),
        dir,
        signer: signer.ok_or(LogStartError::NoKey)?,
        checkpoint_every,
        heartbeat_every,
        policy: witnesses,
        waits_for_witnesses: false,
    };
    Ok(Arc::new(TransparencyLog::start(store, options)?))
}
