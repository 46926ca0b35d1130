//! Why the log does not go on, or does not sign.

use std::{io, path::PathBuf, sync::Arc};

use countersign_core::log::status::StatusError;
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
    /// Memory or a disk has changed a bit.
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
        "the witness {witness} has seen {seen} commits, and the repository has {size}: it was restored from an older copy. {WAY_OUT}"
    )]
    BehindWitness { witness: String, seen: u64, size: u64 },
    #[error(
        "the repository does not continue the newest checkpoint: one of its first {signed} commits has changed. {WAY_OUT}"
    )]
    Forked { signed: u64 },
}

const WAY_OUT: &str = "The log signs nothing more. Get the missing commits from a mirror: stop this server, run `countersign \
                       mirror ADDRESS-OF-A-MIRROR --data-dir DIR` on a copy of the repository without newer commits of its \
                       own until it is up to date, then start this server again. If they are lost for good, begin a log \
                       with a new origin";

impl LogError {
    /// Whether only an operator can change it. Then the log also makes no proofs.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Underivable { .. } | Self::Keep(KeepError::Unusable { .. }) => true,
            Self::Store(_) | Self::Cache { .. } | Self::Signer(_) | Self::Keep(_) | Self::Miscounted(_) => {
                false
            }
        }
    }

    pub(crate) fn cache(path: &std::path::Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Cache { path: path.clone(), source: Arc::new(source) }
    }
}
