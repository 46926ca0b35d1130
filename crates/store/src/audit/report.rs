//! What a check tells: its findings, its progress, and why it could not be made.

use std::path::PathBuf;

use gix::ObjectId;
use thiserror::Error;

use crate::{error::StoreError, repository::refs::BRANCH};

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The repository that was checked.
    pub repository: PathBuf,
    /// The commit that the branch pointed to when the check began.
    pub head: ObjectId,
    /// How many commits were checked.
    pub commits: usize,
    /// The first of them, in the order of the commits.
    pub findings: Vec<Finding>,
    /// How many there are, told or not.
    pub found: usize,
    /// What a person should know, and is no finding.
    pub notes: Vec<String>,
    /// Why others, such as Git's own commands, may see something else here than was checked.
    pub warnings: Vec<String>,
}

/// What is told while the check goes on.
#[derive(Debug)]
pub enum AuditEvent<'a> {
    /// How many commits are done, and how many there are.
    Progress { done: usize, total: usize },
    /// The same findings that are told in the end.
    Found(&'a Finding),
}

/// Something that no server did by the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub commit: ObjectId,
    /// The files in question, as the tree spells them; text from outside.
    pub files: Vec<String>,
    pub reason: String,
}

#[derive(Debug, Error)]
pub enum CheckError {
    #[error("{} is neither a data directory nor a Git repository: {reason}", path.display())]
    NotARepository { path: PathBuf, reason: String },
    #[error("the repository {} has no branch {BRANCH}", path.display())]
    NoBranch { path: PathBuf },
    #[error(
        "the repository {} cannot be checked: it is shallow, and does not have what came before the commit {commit}",
        path.display()
    )]
    Shallow { path: PathBuf, commit: ObjectId },
    #[error("the commit {since} is not in the history of {BRANCH}, whose newest commit is {head}")]
    NotInHistory { since: ObjectId, head: ObjectId },
    #[error("the state after the commit {since} cannot be read: {reason}")]
    SinceUnreadable { since: ObjectId, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}
