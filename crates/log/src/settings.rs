//! What a log needs to begin.

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_core::log::policy::Policy;

use crate::{keeper::CheckpointKeeper, signer::LogSigner};

/// Checkpoints that wait for witnesses, each with its version of the map. Beyond it the oldest goes.
pub const MAX_WAITING: usize = 64;

#[derive(Debug)]
pub struct LogOptions {
    /// For the caches.
    pub dir: PathBuf,
    pub signer: Arc<LogSigner>,
    pub keeper: Box<dyn CheckpointKeeper>,
    /// The least time between two checkpoints.
    pub checkpoint_every: Duration,
    /// How often witnesses are asked again while nothing is new.
    pub heartbeat_every: Duration,
    /// The witnesses and their quorum; `None`: no one is asked.
    pub policy: Option<Policy>,
    /// Sign nothing before [`crate::TransparencyLog::allow_signing`]: the witnesses are asked first what they have seen.
    pub waits_for_witnesses: bool,
}
