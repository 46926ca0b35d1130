//! What a log needs to begin.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use countersign_core::{log::policy::Policy, values::verifier_key::VerifierKey};

use crate::{keeper::CheckpointKeeper, signer::LogSigner};

/// Checkpoints that wait for witnesses, each with its version of the map. Beyond it the oldest goes.
pub const MAX_WAITING: usize = 64;
/// A log that signs nothing has nothing to do but follow.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct LogOptions {
    /// The directory of the caches.
    pub dir: PathBuf,
    pub signer: Arc<LogSigner>,
    pub keeper: Box<dyn CheckpointKeeper>,
    /// The least time between two checkpoints.
    pub checkpoint_every: Duration,
    /// How often witnesses are asked again while nothing is new.
    pub heartbeat_every: Duration,
    /// The witnesses and their quorum; `None`: no one is asked.
    pub policy: Option<Policy>,
    /// Whether to sign nothing before [`crate::TransparencyLog::allow_signing`]: the witnesses are asked first what
    /// they have seen.
    pub waits_for_witnesses: bool,
    /// A checkpoint of this log that a mirror has copied, as a note. The log must continue it.
    pub copied: Option<Vec<u8>>,
}

impl LogOptions {
    /// Settings for a log that another server signs, and that is only derived here.
    pub(crate) fn of_another(dir: &Path, key: VerifierKey, keeper: Box<dyn CheckpointKeeper>) -> Self {
        Self {
            dir: dir.to_owned(),
            signer: Arc::new(LogSigner::of_another(key)),
            keeper,
            checkpoint_every: IDLE,
            heartbeat_every: IDLE,
            policy: None,
            waits_for_witnesses: true,
            copied: None,
        }
    }
}
