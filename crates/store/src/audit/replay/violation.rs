//! What is wrong with a commit.

use std::{collections::BTreeSet, fmt::Display, ops::RangeInclusive, time::Duration};

use countersign_core::rules::{auth::MAX_CARRY, auth::MAX_SET_BACK, snapshot::ReadError};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use gix::ObjectId;
use thiserror::Error;

use crate::audit::report::Finding;

/// What is wrong with a commit, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The files that it is about, the main one first. Never empty, unless the commit touches nothing.
    pub files: Vec<RepoPath>,
    pub fault: ReplayFault,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplayFault {
    #[error("the commit changes nothing, and the server makes no such commit")]
    Nothing,
    #[error("the commit says nothing that the server says in a message")]
    UnknownMessage,
    #[error("the first commit of a history creates the repository, and no other commit does")]
    WrongBeginning,
    #[error("the rules refuse this change: {0}")]
    Refused(String),
    #[error("the message is not the one of this change, which begins with {0:?}")]
    OtherMessage(String),
    #[error("it is made complete, but its signatures do not reach the threshold in force")]
    NotComplete,
    #[error("its signatures reach the threshold in force, but it is not made complete")]
    Complete,
    #[error("it cannot be used: {0}")]
    Unreadable(String),
    #[error("it is missing, but the commit cannot be what it claims to be without it")]
    Absent,
    #[error("it holds no signature of {0}, whom the commit names as its signer")]
    NoSignature(PublicKey),
    #[error("the stored request does not prove what it is kept for: {0}")]
    Request(String),
    #[error("the stored request was used before: its nonce is not new")]
    UsedNonce,
    #[error("it says {0}, but the server writes whole seconds")]
    Fraction(Timestamp),
    #[error("it does not belong here: {0}")]
    Misplaced(String),
    #[error("it says that this was done at {stated}, and the commit was made at {commit}")]
    Time { stated: Timestamp, commit: Timestamp },
    #[error("it was added, which is not part of what the commit claims to be")]
    Added,
    #[error("it was changed, which is not part of what the commit claims to be")]
    Changed,
    #[error("it was removed, which is not part of what the commit claims to be")]
    Removed,
    /// The file comes first; behind it stand those that say what it should be. The check cannot tell which of them is false.
    #[error("its content is not what the rules produce from the rest of the commit")]
    Different,
    #[error("it was removed, but the rules give it new content")]
    Lost,
    #[error("it was not written, but the rules require it")]
    NotWritten,
    #[error("it is still there, but the rules remove it")]
    NotRemoved,
}

impl Violation {
    pub(crate) fn at(file: &RepoPath, fault: ReplayFault) -> Self {
        Self { files: vec![file.clone()], fault }
    }

    /// What is wrong with the request that is stored there.
    pub(crate) fn unproven(request: &RepoPath, reason: impl Display) -> Self {
        Self::at(request, ReplayFault::Request(reason.to_string()))
    }

    /// The finding that this commit breaks the rules.
    pub fn found_in(&self, commit: ObjectId) -> Finding {
        Finding::new(commit, self.files.iter().map(ToString::to_string), self.fault.to_string())
    }

    /// Adds files that the violation is about as well.
    pub(crate) fn of_all(mut self, files: &BTreeSet<RepoPath>) -> Self {
        let others = files.iter().filter(|file| !self.files.contains(file)).cloned().collect::<Vec<_>>();
        self.files.extend(others);
        self
    }
}

impl From<ReadError> for Violation {
    fn from(error: ReadError) -> Self {
        Self { files: vec![error.path], fault: ReplayFault::Unreadable(error.reason) }
    }
}

// How far the times of a request, its commit and its files may be apart.

/// How far the time that a decision wrote into its files may be from the time of its commit. They are the same (D191), but
/// for an index that was written before, and for commits of servers that read their clock twice.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10 * 60);
/// The longest that a server may take to fetch a signers file (D50). A server ends its fetches by then and accepts no
/// setting above it, since a check could not tell such a commit from one that no server made.
pub const MAX_FETCH: Duration = Duration::from_secs(60 * 60);
/// The shortest expiry of a registration that a server can be configured to have (D15).
pub const MIN_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the clock may have shown when a request arrived that was carried out at `time` (D192).
pub(crate) fn around(time: Timestamp) -> RangeInclusive<Timestamp> {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    shift(time, -seconds(MAX_CARRY))..=shift(time, seconds(MAX_SET_BACK))
}

/// The last moment of a second.
pub(crate) fn end_of(second: Timestamp) -> Timestamp {
    shift(second, 1)
}

/// A time that leaves the calendar stays where it was.
pub(crate) fn shift(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(time.unix_seconds().saturating_add(seconds)).unwrap_or(time)
}
