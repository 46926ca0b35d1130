//! Why the log does not go on, or does not sign.

use std::{io, path::PathBuf, sync::Arc};

use countersign_core::log::{checkpoint::CheckpointError, status::StatusError};
use countersign_store::{ObjectId, StoreError};
use thiserror::Error;

use crate::keeper::KeepError;

#[derive(Debug, Clone, Error)]
pub enum LogError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the commit {commit}: {source}")]
    Underivable { commit: ObjectId, source: StatusError },
    #[error("the file {} of the log cannot be used", path.display())]
    Cache { path: PathBuf, source: Arc<io::Error> },
    #[error("the log's key cannot sign: {0}")]
    Signer(String),
    #[error(transparent)]
    Keep(#[from] KeepError),
    #[error(transparent)]
    Refused(#[from] LogRefusal),
    /// The other server's log lies. What was checked before it stays.
    #[error(
        "the origin shows a checkpoint of {size} commits with another root than the commits that it has sent give: its log lies. \
         It is not served, and no proof is made for it"
    )]
    Contradicted { size: u64 },
    /// Two computations gave different results: memory or a disk has changed a bit.
    #[error(
        "the log's {0} was computed twice, with different results: the log is made again from the repository"
    )]
    Miscounted(&'static str),
}

/// The log would contradict what it has said before (D88).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogRefusal {
    #[error(
        "the newest checkpoint has {signed} commits, and the repository has {size}: it was restored from an older copy. {WAY_OUT}"
    )]
    Behind { signed: u64, size: u64 },
    #[error(
        "{witness} has seen {seen} commits, and the repository has {size}: it was restored from an older copy. {WAY_OUT}"
    )]
    BehindWitness { witness: String, seen: u64, size: u64 },
    #[error(
        "{witness} has seen {seen} commits of this log, and the repository has others in their place: it was restored \
         from an older copy. {WAY_OUT}"
    )]
    ForkedWitness { witness: String, seen: u64 },
    #[error(
        "{witness} has seen {seen} commits of this log. This server does not remember to have signed so many, and does not \
         know whether they are the first {seen} of the {size} that it has. If they are, give it a checkpoint of {seen} or \
         more commits, such as a user or a mirror has: `countersign admin log take-checkpoint FILE`. {WAY_OUT}"
    )]
    UnknownRoot { witness: String, seen: u64, size: u64 },
    #[error(
        "the repository does not continue the newest checkpoint: one of its first {signed} commits has changed. {WAY_OUT}"
    )]
    Forked { signed: u64 },
    #[error("the log was not yet compared with what its witnesses have seen")]
    NotCompared,
}

const WAY_OUT: &str = "The log signs nothing more. Get the missing commits from a mirror: stop this server, run `countersign \
                       mirror ADDRESS-OF-A-MIRROR --data-dir DIR` on a copy of the repository without newer commits of its \
                       own until it is up to date, then start this server again. If they are lost for good, read \
                       `countersign admin log accept-loss --help`";

impl LogRefusal {
    /// How many commits are missing, or have others in their place; `None` while that is not known.
    pub fn lost_size(&self) -> Option<u64> {
        match self {
            Self::Behind { signed, .. } | Self::Forked { signed } => Some(*signed),
            Self::BehindWitness { seen, .. }
            | Self::ForkedWitness { seen, .. }
            | Self::UnknownRoot { seen, .. } => Some(*seen),
            Self::NotCompared => None,
        }
    }
}

/// Why a checkpoint that someone shows is not taken as one of this log.
#[derive(Debug, Error)]
pub enum TakeError {
    #[error("it is not a checkpoint that the key {key} of this log has signed: {source}")]
    NotOurs { key: String, source: CheckpointError },
    #[error("it has {size} commits, and the log continues one with {known} already")]
    NotNewer { size: u64, known: u64 },
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Why a loss is not accepted.
#[derive(Debug, Error)]
pub enum AcceptLossError {
    #[error("this log is called `{0}`")]
    OtherOrigin(String),
    #[error("nothing is lost: the log signs")]
    NothingLost,
    #[error("what is lost is {0} commits")]
    OtherSize(u64),
    #[error(transparent)]
    Log(#[from] LogError),
}

impl LogError {
    /// Whether only an operator can change the cause. Then the log also makes no proofs.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Underivable { .. } | Self::Keep(KeepError::Unusable { .. }) => true,
            Self::Store(_)
            | Self::Cache { .. }
            | Self::Signer(_)
            | Self::Keep(_)
            | Self::Miscounted(_)
            | Self::Contradicted { .. } => false,
        }
    }

    pub(crate) fn cache(path: &std::path::Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Cache { path: path.clone(), source: Arc::new(source) }
    }
}
