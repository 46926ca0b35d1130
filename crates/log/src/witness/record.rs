//! What a witness knows of one log.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use countersign_core::{log::checkpoint::SignedCheckpoint, values::verifier_key::VerifierKey};

use super::{Contradiction, memory::WitnessStop, replay::LogReplay};

#[derive(Debug)]
pub struct WitnessedLog {
    pub(super) keys: Vec<VerifierKey>,
    pub(super) replay: OnceLock<LogReplay>,
    pub(super) record: Mutex<LogRecord>,
}

#[derive(Debug)]
pub(super) struct LogRecord {
    /// On disk before anyone sees a cosignature of it.
    pub(super) newest: Option<SignedCheckpoint>,
    pub(super) stop: Option<WitnessStop>,
    /// Signed by the log, and not proved to continue the record. The replay will tell.
    pub(super) doubtful: Option<SignedCheckpoint>,
}

impl WitnessedLog {
    /// `None` for a log that this witness does not derive itself.
    pub fn replay(&self) -> Option<&LogReplay> {
        self.replay.get()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LogRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `signed` is the log's own word. So is what is on record.
    pub(super) fn find_contradiction(
        &self,
        record: &LogRecord,
        signed: &SignedCheckpoint,
    ) -> Option<Contradiction> {
        let new = signed.checkpoint();
        let own_root = |size| self.replay.get().and_then(|replay| replay.root_at(size));
        let known = record.newest.as_ref().map(SignedCheckpoint::checkpoint);
        if let Some(known) = known.filter(|known| known.size == new.size && known.root != new.root) {
            let reason = format!("its key has signed two roots for {} commits", known.size);
            let (size, own_root) = (known.size, own_root(known.size));
            return Some(Contradiction { origin: new.origin.clone(), reason, size, own_root });
        }
        // What is on record may be of a history that the mirror no longer has.
        let doubtful = record.doubtful.as_ref().map(SignedCheckpoint::checkpoint);
        for checkpoint in [Some(new), known, doubtful].into_iter().flatten() {
            let (size, own_root) = (checkpoint.size, own_root(checkpoint.size));
            if own_root.is_some_and(|own| own != checkpoint.root) {
                let reason =
                    format!("its key has signed another root for {size} commits than its journal gives");
                return Some(Contradiction { origin: new.origin.clone(), reason, size, own_root });
            }
        }
        None
    }
}

impl LogRecord {
    /// Remembers the smallest one that the replay has not come to yet: it will come there first.
    pub(super) fn doubt(&mut self, signed: SignedCheckpoint, replayed: u64) {
        let open =
            self.doubtful.as_ref().map(|known| known.checkpoint().size).filter(|size| *size > replayed);
        if open.is_none_or(|size| signed.checkpoint().size < size) {
            self.doubtful = Some(signed);
        }
    }

    /// 0 if there is no checkpoint on record.
    pub(super) fn size(&self) -> u64 {
        self.newest.as_ref().map_or(0, |newest| newest.checkpoint().size)
    }
}
