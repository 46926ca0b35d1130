//! Why something could not be stored or read.

use std::{fmt, sync::Arc};

use countersign_core::values::bounds::{FILE_BYTES, SHARED_CHANGE_BYTES};
use countersign_core::values::{path::RepoPath, time::Timestamp};
use thiserror::Error;

use crate::{budget::OverBudget, machine::disk::DiskError, sequence::SequenceError};

#[derive(Debug, Clone, Error)]
pub enum StoreError {
    #[error("{path} cannot be stored: a file cannot become a directory, nor a directory a file")]
    Conflict { path: RepoPath },
    #[error("{path} cannot be stored: it has {bytes} bytes, and a stored file has at most {FILE_BYTES}")]
    TooLarge { path: RepoPath, bytes: usize },
    /// Releases that were registered before there was a bound can make a rotation so large (D202).
    #[error(
        "the change has {bytes} bytes, and the order of changes that nodes share takes at most {SHARED_CHANGE_BYTES} of one. \
         New signers change files of each release that waits for signatures: sign or withdraw some of them first"
    )]
    TooLargeToShare { bytes: usize },
    #[error("the repository cannot be used: {subject}: {reason}")]
    Corrupt { subject: String, reason: String },
    #[error(transparent)]
    Io(#[from] DiskError),
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error("the order of changes, which nodes share, cannot be reached")]
    Unordered(#[from] SequenceError),
    /// The change was sent there, and may turn up later.
    #[error("the order of changes, which nodes share, did not confirm the change")]
    Unconfirmed(#[source] SequenceError),
    /// The node has stopped, until the database gives it something else.
    #[error("this node has stopped following the others: {0}")]
    Halted(Arc<String>),
    #[error("too many changes are waiting to be stored")]
    Busy,
    #[error(
        "this machine's clock shows {clock}, and the newest change was made at {newest}: one of the two is wrong, and nothing \
         is changed meanwhile. The operator sets the clock, or waits (docs/operations.md, The clock)"
    )]
    ClockBehind { clock: Timestamp, newest: Timestamp },
    /// A fault of this program: it decided what the rules do not give.
    #[error(
        "nothing was changed, because a check by the rules, which every node makes, refuses the change: {0}"
    )]
    Illegal(String),
    #[error(
        "nothing was changed, because this node's clock shows {clock} and the database's {order}: the operator sets this \
         machine's clock (docs/cluster.md, Clocks)"
    )]
    WrongClock { clock: Timestamp, order: Timestamp },
    #[error("the decision panicked")]
    Panicked,
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    pub(crate) fn corrupt(subject: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Self::Corrupt { subject: subject.to_string(), reason: reason.to_string() }
    }

    pub(crate) fn collision(subject: impl fmt::Display) -> Self {
        Self::corrupt(subject, "its content was made to have the id of other content")
    }

    /// Whether there is no room on the disk.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io(disk) if disk.is_full())
    }

    pub(crate) fn halted(reason: impl Into<String>) -> Self {
        Self::Halted(Arc::new(reason.into()))
    }

    /// The reason for a person who checks a repository, without what concerns only a server.
    pub(crate) fn reason(&self) -> String {
        if let Self::Corrupt { subject, reason } = self {
            return format!("{subject}: {reason}");
        }
        self.to_string()
    }
}
