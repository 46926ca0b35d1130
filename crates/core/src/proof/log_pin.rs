//! What a user has seen of a log, and whether what is shown later can be the same log (D98).

use std::cmp::Ordering;

use serde::Serialize;
use thiserror::Error;

use crate::log::checkpoint::{Checkpoint, CheckpointError, Cosignature, SignedCheckpoint};
use crate::log::{note::Note, policy::Policy, tree::TreeHead};
use crate::values::{time::Timestamp, verifier_key::VerifierKey};
use crate::{json_fields, proof::freshness::MAX_AHEAD_SECONDS};

/// The largest checkpoint of a log that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogPin {
    pub seen_at: Timestamp,
    /// The whole note: its signatures are the evidence if another one contradicts it.
    pub checkpoint: String,
}

/// What has to be shown so that two checkpoints can be of one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// The two are equal.
    Same,
    /// The tree `to` begins with the tree `from`.
    Grown { from: TreeHead, to: TreeHead },
    /// What is shown is older than what was seen, and says so. The tree that was seen begins with it.
    Shrunk { shown: TreeHead, seen: TreeHead },
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogPinFault {
    #[error("the checkpoint that this computer remembers cannot be used: {0}")]
    Unusable(#[from] CheckpointError),
    #[error("the log has two roots for the size {0}")]
    Fork(u64),
    #[error(
        "the witness {witness} has cosigned a log of size {shown} after one of size {seen}: its memory was set back, \
         or it lies"
    )]
    WitnessWentBack { witness: String, seen: u64, shown: u64 },
    #[error(
        "the log has size {shown}, and had size {seen} when this computer saw it; no witness says how old that is"
    )]
    Smaller { seen: u64, shown: u64 },
}

json_fields!(object LogPin { seen_at, checkpoint: text(|note| head_of(note).map(|_| note.to_owned())) });

fn head_of(note: &str) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::parse(Note::parse(note.as_bytes())?.text())
}

impl LogPin {
    pub fn of(note: &Note, now: Timestamp) -> Self {
        Self { seen_at: now.to_whole_seconds(), checkpoint: note.to_string() }
    }

    pub fn head(&self) -> Result<Checkpoint, CheckpointError> {
        head_of(&self.checkpoint)
    }

    /// Compares the sizes, the roots of equal sizes, and the times of witnesses. `shown` was opened with the keys of the
    /// same log and of these witnesses. `is_timed`: a quorum of them proves its time.
    pub fn compare(
        &self,
        shown: &SignedCheckpoint,
        witnesses: &[VerifierKey],
        is_timed: bool,
    ) -> Result<Continuation, LogPinFault> {
        let note = Note::parse(self.checkpoint.as_bytes()).map_err(CheckpointError::from)?;
        let seen = SignedCheckpoint::open(&note, std::slice::from_ref(shown.log_key()), witnesses)?;
        let (before, after) = (seen.checkpoint().head(), shown.checkpoint().head());
        match before.size.cmp(&after.size) {
            Ordering::Equal if before.root == after.root => return Ok(Continuation::Same),
            Ordering::Equal => return Err(LogPinFault::Fork(after.size)),
            Ordering::Less => return Ok(Continuation::Grown { from: before, to: after }),
            Ordering::Greater => {}
        }
        let time_of = |witness: &VerifierKey| {
            let seen_by = seen.cosignatures().filter(|by| by.witness.name() == witness.name());
            seen_by.map(|cosignature| cosignature.time).max()
        };
        let mut cosignatures = shown.cosignatures();
        let contradicts = cosignatures.find(|later| time_of(&later.witness).is_some_and(|t| later.time > t));
        if let Some(later) = contradicts {
            return Err(LogPinFault::WitnessWentBack {
                witness: later.witness.name().to_owned(),
                seen: before.size,
                shown: after.size,
            });
        }
        match is_timed {
            true => Ok(Continuation::Shrunk { shown: after, seen: before }),
            false => Err(LogPinFault::Smaller { seen: before.size, shown: after.size }),
        }
    }
}

/// The latest time that a quorum can still prove for an older state than the one with these cosignatures, which were seen
/// at `now` (D99). A witness cosigns nothing older after it has cosigned this. But its clock can have been ahead when it
/// cosigned the older state, and set back since. Clients accept a time that is a little ahead (D86), so that counts (D211).
/// `None`: the other witnesses are enough to go on for ever.
pub fn latest_older_proof(
    policy: &Policy,
    cosignatures: &[Cosignature],
    now: Timestamp,
) -> Option<Timestamp> {
    // A second more than the whole ones.
    let ahead = u64::try_from(now.unix_seconds().saturating_add(MAX_AHEAD_SECONDS + 1)).unwrap_or(0);
    let time_of = |key: &VerifierKey| {
        let cosignature = cosignatures.iter().find(|cosignature| cosignature.witness == *key);
        cosignature.map_or(u64::MAX, |cosignature| cosignature.time.max(ahead))
    };
    // A key that has not cosigned this may be used without what the witness remembers.
    let times = policy.witness_keys().into_iter().map(|key| (key.clone(), time_of(&key)));
    let latest = policy.as_of(times)?;
    Timestamp::from_unix_seconds(i64::try_from(latest).ok()?).ok()
}
