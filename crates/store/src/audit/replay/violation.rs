//! What is wrong with a commit: its times, the requests that it repeats, or what it changed.

use std::collections::{BTreeSet, HashMap, hash_map::Entry};
use std::{fmt::Display, ops::RangeInclusive, time::Duration};

use countersign_core::documents::signed_request::Nonce;
use countersign_core::rules::auth::{MAX_CARRY, MAX_SET_BACK, VerifiedRequest, nonce_expiry, request_expiry};
use countersign_core::rules::snapshot::ReadError;
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use gix::ObjectId;
use thiserror::Error;

use crate::audit::Finding;

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
    #[error("the first commit of a history creates the repository, and no other commit does")]
    WrongBeginning,
    #[error("the rules refuse this change: {0}")]
    Refused(String),
    #[error("the message is not the one of this change, which begins with {0:?}")]
    OtherMessage(String),
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
    /// The file comes first; behind it stand those that say what it should be. The check cannot tell which of them is
    /// false.
    #[error("its content is not what the rules produce from the rest of the commit")]
    Different,
    /// A fault that these words say in full.
    #[error("{0}")]
    Other(&'static str),
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

/// How far the time that a decision wrote into its files may be from the time of its commit. They are the same (D191),
/// but for an index that was written before, and for commits of servers that read their clock twice.
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

// Which stored requests cannot both have been accepted, since one was used again.

/// How long before a commit the requests are that are still remembered. A stored request is at most some hour older
/// than its commit. The rest is for clocks that were set back.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of nonces below which nothing is forgotten.
pub const FEW: usize = 10_000;

/// The nonces that a server would know (D31), for as long as a later commit can hold the same request.
#[derive(Debug, Default)]
pub struct SeenNonces {
    pub seen: HashMap<Nonce, Vec<SeenRequest>>,
    /// How many there are, and how many there may be before the old ones are looked for.
    pub count: usize,
    most: usize,
    /// Nonces that count only if the change that is being tried is made.
    tried: Option<Vec<Nonce>>,
}

#[derive(Debug, Clone, Copy)]
pub struct SeenRequest {
    request: VerifiedRequest,
    /// The time of the commit that stored the request.
    committed: Timestamp,
}

impl SeenNonces {
    /// Whether the request, stored by a commit of this time, may have been accepted after those before it.
    pub fn accept(&mut self, request: VerifiedRequest, committed: Timestamp) -> bool {
        self.forget(committed);
        let seen = self.seen.entry(request.nonce).or_default();
        let is_new = !seen.iter().any(|earlier| earlier.excludes(&request));
        seen.push(SeenRequest { request, committed });
        self.count += 1;
        if let Some(tried) = &mut self.tried {
            tried.push(request.nonce);
        }
        is_new
    }

    /// Begins a trial: requests from now on can be taken back. Returns how many there are to take back.
    pub fn begin_trial(&mut self) -> usize {
        self.tried.get_or_insert_default().len()
    }

    /// Takes back all requests but so many.
    pub fn take_back(&mut self, kept: usize) {
        let Some(tried) = &mut self.tried else { return };
        for nonce in tried.drain(kept.min(tried.len())..).rev() {
            if let Entry::Occupied(mut seen) = self.seen.entry(nonce) {
                self.count -= usize::from(seen.get_mut().pop().is_some());
                if seen.get().is_empty() {
                    seen.remove();
                }
            }
        }
    }

    /// Ends a trial whose change is made: its requests stay.
    pub fn end_trial(&mut self) {
        self.tried = None;
    }

    fn forget(&mut self, now: Timestamp) {
        if self.count < self.most.max(FEW) {
            return;
        }
        let oldest = shift(now, -i64::try_from(REMEMBERED.as_secs()).expect("a day fits"));
        self.seen.retain(|_, seen| {
            seen.retain(|seen| seen.request.timestamp >= oldest);
            !seen.is_empty()
        });
        self.count = self.seen.values().map(Vec::len).sum();
        self.most = 2 * self.count;
    }
}

impl SeenRequest {
    /// A server that was restored from a clone has no nonces, and accepts what is dated after its start: then it has
    /// this commit already. But the same request is the same one for any server.
    fn excludes(&self, later: &VerifiedRequest) -> bool {
        let is_same = self.request.signature == later.signature;
        excludes(&self.request, later) && (is_same || later.timestamp < self.committed)
    }
}

/// Whether a server that remembers the nonce of one of these two cannot accept the other, where it is the same nonce:
/// the first one is remembered until the other is too old.
fn excludes(one: &VerifiedRequest, other: &VerifiedRequest) -> bool {
    let outlasts = |first: Timestamp, second: Timestamp| request_expiry(second) <= nonce_expiry(first);
    outlasts(one.timestamp, other.timestamp) && outlasts(other.timestamp, one.timestamp)
}
