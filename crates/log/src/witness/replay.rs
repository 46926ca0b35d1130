//! A log that is derived here from what a mirror has received.

use std::{path::Path, sync::Arc, time::Duration};

use countersign_core::{log::tree::Hash, values::verifier_key::VerifierKey};
use countersign_store::Store;
use tokio::sync::watch;

use crate::{
    error::LogError,
    keeper::{CheckpointKeeper, KeepError, KeptNotes},
    log::TransparencyLog,
    settings::LogOptions,
    signer::LogSigner,
};

/// It signs nothing, so it never has anything to do but follow.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct LogReplay {
    log: Arc<TransparencyLog>,
}

/// Nothing of it outlives the process; it is derived again at each start.
#[derive(Debug)]
struct Nothing;

impl LogReplay {
    /// `dir` is for files that can be deleted.
    pub fn start(store: &Store, dir: &Path, key: VerifierKey) -> Result<Self, LogError> {
        let options = LogOptions {
            dir: dir.to_owned(),
            signer: Arc::new(LogSigner::elsewhere(key, |_| Err("this is another server's log".to_owned()))),
            keeper: Box::new(Nothing),
            checkpoint_every: IDLE,
            heartbeat_every: IDLE,
            policy: None,
            waits_for_witnesses: true,
        };
        Ok(Self { log: Arc::new(TransparencyLog::start(store, options)?) })
    }

    pub fn key(&self) -> &VerifierKey {
        self.log.key()
    }

    /// Commits that were replayed.
    pub fn len(&self) -> u64 {
        *self.log.sizes().borrow()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Of the first `size` commits; `None` before there are so many.
    pub fn root_at(&self, size: u64) -> Option<Hash> {
        self.log.root_at(size)
    }

    /// Tells how many commits were replayed.
    pub fn sizes(&self) -> watch::Receiver<u64> {
        self.log.sizes()
    }

    /// Returns when its thread has ended.
    pub fn stop(&self) {
        self.log.stop();
    }
}

impl CheckpointKeeper for Nothing {
    fn load(&mut self) -> Result<KeptNotes, KeepError> {
        Ok(KeptNotes::default())
    }

    fn place(&self) -> String {
        String::new()
    }

    fn keep_newest(&mut self, _before: u64, _note: &str) -> Result<(), KeepError> {
        Ok(())
    }

    fn keep_cosigned(&mut self, _note: &str) -> Result<(), KeepError> {
        Ok(())
    }
}
