//! What a witness knows of one log.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, atomic::AtomicBool};
use std::{collections::VecDeque, path::Path, time::Duration, time::Instant};

use countersign_core::log::checkpoint::{Checkpoint, CheckpointError, SignedCheckpoint, WitnessRequest};
use countersign_core::log::tree::{Hash, TreeHead, empty_root, parse_hash, proves_fork, verify_consistency};
use countersign_core::values::verifier_key::VerifierKey;
use countersign_store::{Store, machine::clock::lock};
use thiserror::Error;

use crate::witness::memory::{Contradiction, WitnessMemoryError, WitnessStop};
use crate::{
    error::LogError, log::LogCopy, log::TransparencyLog, witness::network::AskedTooOften,
    witness::network::AskingRate,
};

#[derive(Debug)]
pub struct WitnessedLog {
    /// All of them have the origin as their name; there is at least one.
    pub(super) keys: Vec<VerifierKey>,
    /// How often it can ask, if the witness knows it from a list.
    pub(super) rate: Option<AskingRate>,
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

    pub(super) fn origin(&self) -> &str {
        self.keys.first().map_or("", VerifierKey::name)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LogRecord> {
        lock(&self.record)
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

    /// The proof of a request shows that its checkpoint does not continue the one on record. Only the log can make such
    /// a proof: it leads to a root that the log has signed.
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

    /// The time of the witness's last cosignatures.
    pub(super) fn last_time(&self) -> Option<u64> {
        self.newest.as_ref()?.cosignatures().map(|cosignature| cosignature.time).max()
    }

    /// The size on record; 0 if there is no checkpoint.
    pub(super) fn size(&self) -> u64 {
        self.newest.as_ref().map_or(0, |newest| newest.checkpoint().size)
    }
}

// Why a witness does not cosign.

#[derive(Debug, Clone, Error)]
pub enum CosignRefusal {
    #[error(transparent)]
    Malformed(CheckpointError),
    #[error("this witness does not know the log `{0}`")]
    UnknownLog(String),
    #[error(transparent)]
    NotSigned(CheckpointError),
    #[error("the old size {old} is larger than the size {size} of the checkpoint")]
    OldIsLarger { old: u64, size: u64 },
    /// The witness has seen another size, which is the one on record.
    #[error("the newest checkpoint that this witness has seen of the log has {0} commits")]
    OtherSize(u64),
    #[error("the proof does not lead from the newest checkpoint that this witness has seen to this one")]
    BadProof,
    #[error("this witness knows another root for the first {0} commits of the log: the log has forked")]
    OtherRoot(u64),
    #[error("this witness cosigns nothing more of the log, until its operator decides: {0}")]
    Stopped(String),
    #[error(
        "this witness has replayed {replayed} commits so far, and the checkpoint has {size}: try again in a few seconds"
    )]
    NotReplayed { size: u64, replayed: u64 },
    #[error(
        "the checkpoint has {size} commits, and the journal of the log has had more for over two minutes: this witness does \
         not say that this is the newest state"
    )]
    Withheld { size: u64 },
    #[error("this witness does not know yet which log its server keeps: try again in a few seconds")]
    NotKnownYet,
    #[error(
        "the clock of this witness says {now}, and it has cosigned this log at {last}, in seconds since 1970: it cosigns \
         nothing before its clock is right"
    )]
    ClockBehind { now: u64, last: u64 },
    #[error(transparent)]
    TooOften(#[from] AskedTooOften),
    #[error("this witness cannot record the checkpoint")]
    Memory(#[from] WitnessMemoryError),
    #[error("the key of this witness cannot sign: {0}")]
    Signer(String),
}

// A log that is derived here from what a mirror has received.

/// How long commits can be in the journal of a log before a checkpoint has to cover them.
const WITHHELD_AFTER: Duration = Duration::from_secs(120);
/// Sizes that are remembered, each with its time.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
const MAX_SAMPLES: usize = 64;

#[derive(Debug, Clone)]
pub struct LogReplay {
    copy: LogCopy,
    /// How many commits there were, oldest first.
    samples: Arc<Mutex<VecDeque<(Instant, u64)>>>,
}

impl LogReplay {
    /// Starts a replay. `dir` is for files that can be deleted; with them it goes on from where it was (D270).
    pub fn start(store: &Store, dir: &Path, key: VerifierKey) -> Result<Self, LogError> {
        Ok(Self { copy: LogCopy::start(store, dir, key)?, samples: Arc::default() })
    }

    pub fn log(&self) -> &TransparencyLog {
        &self.copy.log
    }

    /// Commits that were replayed.
    pub fn size(&self) -> u64 {
        *self.log().sizes().borrow()
    }

    /// The root of the first `size` commits; `None` before there are so many.
    pub fn root_at(&self, size: u64) -> Option<Hash> {
        self.log().root_at(size)
    }

    /// Lets what was derived up to a checkpoint count after a start, if the log has signed the root that the replay has
    /// counted.
    pub(super) fn keep_up_to(&self, signed: &SignedCheckpoint) {
        let Checkpoint { size, root, .. } = signed.checkpoint();
        if self.root_at(*size) == Some(*root) {
            self.copy.offer(signed.log_note().to_string().into_bytes());
        }
    }

    /// Remembers how many commits there are at this time. To be called every few seconds.
    pub fn note_size(&self, now: Instant) {
        let mut samples = lock(&self.samples);
        let is_due = samples.back().is_none_or(|(at, _)| now.saturating_duration_since(*at) >= SAMPLE_EVERY);
        if is_due {
            samples.push_back((now, self.size()));
        }
        if samples.len() > MAX_SAMPLES {
            samples.pop_front();
        }
    }

    /// Whether the journal has had more than `size` commits for so long that the log hides them.
    pub fn has_withheld(&self, size: u64, now: Instant) -> bool {
        let samples = lock(&self.samples);
        let since = samples.iter().find(|(_, len)| *len > size);
        since.is_some_and(|(at, _)| now.saturating_duration_since(*at) > WITHHELD_AFTER)
    }
}

// The rules by which an ordinary witness cosigns (c2sp.org/tlog-witness).

/// Examines a checkpoint. `known` is the newest one on record; without one, the log was empty.
pub(super) fn examine(
    known: Option<&Checkpoint>,
    request: &WitnessRequest,
    new: &Checkpoint,
) -> Result<(), CosignRefusal> {
    let (old, size) = (request.old, new.size);
    if old > size {
        return Err(CosignRefusal::OldIsLarger { old, size });
    }
    let known = known.map_or(TreeHead { size: 0, root: empty_root() }, Checkpoint::head);
    if old != known.size {
        return Err(CosignRefusal::OtherSize(known.size));
    }
    if size == known.size && new.root != known.root {
        return Err(CosignRefusal::OtherRoot(size));
    }
    verify_consistency(&known, &new.head(), &request.proof).map_err(|_| CosignRefusal::BadProof)
}

/// A checkpoint of no commits with the root of some. It has the form of a checkpoint otherwise.
pub(super) fn has_wrong_empty_root(text: &str) -> bool {
    let mut lines = text.split('\n').skip(1);
    let (size, root) = (lines.next(), lines.next().and_then(parse_hash));
    size == Some("0") && root.is_some_and(|root| root != empty_root())
}
