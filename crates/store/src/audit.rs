//! Checking that a whole history was made by the rules, commit by commit. Only reads: it takes no lock, and a server
//! may be at work beside it.
//!
//! What the rules are, [`replay`] knows; [`walk`] makes states of commits, and differences of states. What a check
//! tells stands here: its findings, its progress, and why it could not be made.

mod plain;
pub mod replay;
pub mod walk;

use std::path::{Path, PathBuf};

use countersign_core::values::time::Timestamp;
use gix::{ObjectId, hash::Kind as HashKind};
use thiserror::Error;

use crate::{error::StoreError, repository::refs::BRANCH};

/// How many findings are told; beyond it they are only counted.
pub(crate) const MAX_FINDINGS: usize = 200;
/// How many files of one finding are named.
const MAX_FILES: usize = 20;

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
    /// How many findings there are, told or not.
    pub found: usize,
    /// Notes that a person should know, and that are no findings.
    pub notes: Vec<String>,
    /// Why others, such as Git's own commands, may see something else here than was checked.
    pub warnings: Vec<String>,
}

impl Checked {
    /// The check of a repository that has no commit yet.
    pub fn new(repository: &Path) -> Self {
        Self {
            repository: repository.to_owned(),
            head: ObjectId::null(HashKind::Sha1),
            commits: 0,
            findings: Vec::new(),
            found: 0,
            notes: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Takes in one more finding. `None` if there are too many to tell.
    pub fn add(&mut self, finding: Finding) -> Option<&Finding> {
        self.found += 1;
        if self.findings.len() == MAX_FINDINGS {
            return None;
        }
        self.findings.push(finding);
        self.findings.last()
    }
}

/// What is told while the check goes on.
#[derive(Debug)]
pub enum AuditEvent<'a> {
    /// How many commits are done, and how many there are.
    Progress { done: usize, total: usize },
    /// A finding, which is also in the report at the end.
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

impl Finding {
    /// The first few files are named, and the others counted.
    pub(crate) fn new(
        commit: ObjectId,
        files: impl ExactSizeIterator<Item = String>,
        mut reason: String,
    ) -> Self {
        let others = files.len().saturating_sub(MAX_FILES);
        if others > 0 {
            reason.push_str(&format!(" (and {others} more files)"));
        }
        Self { commit, files: files.take(MAX_FILES).collect(), reason }
    }
}

/// Commits that are older than the one before them. The server's clock may have been set back, so an order of times
/// proves nothing. But someone should look.
#[derive(Debug, Default)]
pub(crate) struct Backwards {
    first: Option<ObjectId>,
    others: usize,
    last: Option<Timestamp>,
}

impl Backwards {
    /// Begins after a commit of this time.
    pub(crate) fn after(last: Timestamp) -> Self {
        Self { last: Some(last), ..Self::default() }
    }

    pub(crate) fn note_time(&mut self, commit: ObjectId, time: Timestamp) {
        if self.last.replace(time).is_some_and(|before| time < before) {
            self.others += usize::from(self.first.is_some());
            self.first.get_or_insert(commit);
        }
    }

    /// What a person should know, if there are such commits.
    pub(crate) fn note(&self) -> Option<String> {
        let more = if self.others == 0 { String::new() } else { format!(" and {} more", self.others) };
        self.first.map(|first| {
            format!(
                "the commit {first}{more} is older than the one before it: the server's clock was set back, or \
                 independent commits were put into another order"
            )
        })
    }
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
