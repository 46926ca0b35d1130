//! What a witness knows of one log.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicBool};

use countersign_core::{
    log::{
        checkpoint::{Checkpoint, SignedCheckpoint},
        proofs::WitnessRequest,
        tree::proves_fork,
    },
    values::verifier_key::VerifierKey,
};

use super::{contradiction::Contradiction, memory::WitnessStop, replay::LogReplay};

#[derive(Debug)]
pub struct WitnessedLog {
    pub(super) keys: Vec<VerifierKey>,
    pub(super) replay: OnceLock<LogReplay>,
    /// Whether there will be a replay, without which nothing is cosigned.
    pub(super) is_replayed: AtomicBool,
    pub(super) record: Mutex<LogRecord>,
}

#[derive(Debug)]
pub(super) struct LogRecord {
    /// The newest checkpoint, on disk before anyone sees a cosignature of it.
    pub(super) newest: Option<SignedCheckpoint>,
    pub(super) stop: Option<WitnessStop>,
    /// A checkpoint that the log has signed, and not proved to continue the record. It is on disk. The replay will
    /// tell, or the log itself.
    pub(super) doubtful: Option<SignedCheckpoint>,
}

impl WitnessedLog {
    /// The replay; `None` for a log that this witness does not derive itself.
    pub fn replay(&self) -> Option<&LogReplay> {
        self.replay.get()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LogRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a contradiction between `signed`, which is the log's own word, and what is on record, which is too.
    pub(super) fn find_contradiction(
        &self,
        record: &LogRecord,
        signed: &SignedCheckpoint,
    ) -> Option<Contradiction> {
        let new = signed.checkpoint();
        let own_root = |size| self.replay.get().and_then(|replay| replay.root_at(size));
        let contradiction = |size, reason| {
            let (origin, own_root) = (new.origin.clone(), own_root(size));
            Contradiction { origin, reason, size, own_root, shown_by: None }
        };
        let known = record.newest.as_ref().map(SignedCheckpoint::checkpoint);
        let doubtful = record.doubtful.as_ref().map(SignedCheckpoint::checkpoint);
        let is_other = |a: &Checkpoint, b: &Checkpoint| a.size == b.size && a.root != b.root;
        let pairs = [(known, Some(new)), (doubtful, Some(new)), (doubtful, known)];
        let mut pairs = pairs.into_iter().filter_map(|(a, b)| a.zip(b));
        if let Some((checkpoint, _)) = pairs.find(|(a, b)| is_other(a, b)) {
            let size = checkpoint.size;
            return Some(contradiction(size, format!("its key has signed two roots for {size} commits")));
        }
        // What is on record may be of a history that the mirror no longer has.
        let mut all = [Some(new), known, doubtful].into_iter().flatten();
        let wrong =
            all.find(|checkpoint| own_root(checkpoint.size).is_some_and(|own| own != checkpoint.root))?;
        let size = wrong.size;
        let reason = format!("its key has signed another root for {size} commits than its journal gives");
        Some(contradiction(size, reason))
    }

    /// The proof of a request shows that its checkpoint does not continue the one on record. Only the log can make such a
    /// proof: it leads to a root that the log has signed.
    pub(super) fn find_proven_fork(
        record: &LogRecord,
        request: &WitnessRequest,
        signed: &SignedCheckpoint,
    ) -> Option<Contradiction> {
        let (known, new) = (record.newest.as_ref()?.checkpoint(), signed.checkpoint());
        if !proves_fork(&known.head(), &new.head(), &request.proof) {
            return None;
        }
        let (size, origin) = (known.size, new.origin.clone());
        let reason = format!("its {} commits begin with others than the {size} that it had signed", new.size);
        Some(Contradiction { origin, reason, size, own_root: None, shown_by: Some(request.clone()) })
    }
}

impl LogRecord {
    /// Whether to remember this checkpoint. The smallest counts to which neither the replay nor the record has come
    /// yet: they will come there first.
    pub(super) fn is_worth_doubt(&self, signed: &SignedCheckpoint, replayed: u64) -> bool {
        let known = replayed.max(self.size());
        let open = self.doubtful.as_ref().map(|known| known.checkpoint().size).filter(|size| *size > known);
        open.is_none_or(|size| signed.checkpoint().size < size)
    }

    /// The time of the witness's last cosignature.
    pub(super) fn last_time(&self) -> Option<u64> {
        Some(self.newest.as_ref()?.cosignatures().next()?.time)
    }

    /// The size on record; 0 if there is no checkpoint.
    pub(super) fn size(&self) -> u64 {
        self.newest.as_ref().map_or(0, |newest| newest.checkpoint().size)
    }
}
