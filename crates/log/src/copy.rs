//! The copy of another server's log: derived from the commits that a mirror has received, with the checkpoints that the
//! other server shows.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use countersign_core::values::verifier_key::VerifierKey;
use countersign_store::Store;

use crate::{
    error::LogError,
    keeper::{CheckpointFiles, CheckpointKeeper, KeepError, KeptNotes},
    log::TransparencyLog,
    settings::LogOptions,
    state::lock,
};

#[derive(Debug, Clone)]
pub struct LogCopy {
    pub log: Arc<TransparencyLog>,
    offered: Arc<Mutex<Option<Vec<u8>>>>,
}

impl LogCopy {
    /// Starts a copy. `dir` is for the caches, and for the newest checkpoint that they are good for. All of it can be
    /// deleted.
    pub fn start(store: &Store, dir: &Path, key: VerifierKey) -> Result<Self, LogError> {
        let offered = Arc::default();
        let keeper = CopiedCheckpoints { offered: Arc::clone(&offered), files: CheckpointFiles::new(dir) };
        let options = LogOptions::of_another(dir, key, Box::new(keeper));
        Ok(Self { log: Arc::new(TransparencyLog::start(store, options)?), offered })
    }

    /// The newest checkpoint that the other server shows. The log's key must have signed it. It counts within a second, and
    /// when the commits are there that it covers.
    pub fn offer(&self, note: Vec<u8>) {
        *lock(&self.offered) = Some(note);
    }
}

#[derive(Debug)]
struct CopiedCheckpoints {
    offered: Arc<Mutex<Option<Vec<u8>>>>,
    files: CheckpointFiles,
}

impl CheckpointKeeper for CopiedCheckpoints {
    fn load(&mut self) -> Result<KeptNotes, KeepError> {
        let cached = self.files.load()?.newest;
        Ok(KeptNotes { newest: lock(&self.offered).clone(), cosigned: None, cached })
    }

    fn place(&self) -> String {
        "the other server".to_owned()
    }

    // A server that shows an older one than before is not told.
    fn keep_newest(&mut self, _before: u64, _note: &str) -> Result<(), KeepError> {
        Ok(())
    }

    fn keep_cosigned(&mut self, _note: &str) -> Result<(), KeepError> {
        Ok(())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_copy(&self) -> bool {
        true
    }

    fn note_cached(&mut self, note: &str) -> Result<(), KeepError> {
        self.files.keep_newest(0, note)
    }
}
