//! Why something could not be stored or read.

use std::fmt;

use countersign_core::values::{bounds::FILE_BYTES, path::RepoPath};
use thiserror::Error;

use crate::{budget::OverBudget, disk::DiskError};

#[derive(Debug, Clone, Error)]
pub enum StoreError {
    #[error("{path} cannot be stored: a file cannot become a directory, nor a directory a file")]
    Conflict { path: RepoPath },
    #[error("{path} cannot be stored: it has {bytes} bytes, and a stored file has at most {FILE_BYTES}")]
    TooLarge { path: RepoPath, bytes: usize },
    #[error("the repository cannot be used: {subject}: {reason}")]
    Corrupt { subject: String, reason: String },
    #[error(transparent)]
    Io(#[from] DiskError),
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error("too many changes are waiting to be stored")]
    Busy,
    #[error("the decision panicked")]
    Panicked,
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    pub(crate) fn corrupt(subject: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Self::Corrupt { subject: subject.to_string(), reason: reason.to_string() }
    }

    /// For a person who checks a repository: without what the server says of its own.
    pub(crate) fn reason(&self) -> String {
        if let Self::Corrupt { subject, reason } = self {
            return format!("{subject}: {reason}");
        }
        self.to_string()
    }
}
