//! Why a witness does not cosign.

use countersign_core::log::checkpoint::CheckpointError;
use thiserror::Error;

use super::memory::WitnessMemoryError;

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
    #[error("this witness cannot record the checkpoint")]
    Memory(#[from] WitnessMemoryError),
    #[error("the key of this witness cannot sign: {0}")]
    Signer(String),
}
