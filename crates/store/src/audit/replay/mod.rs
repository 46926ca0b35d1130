//! Replaying a commit: whether the rules, in the state before it, give exactly what it changed.
//!
//! The message says what a commit claims to be. From that and from what the commit stored, the request is put together
//! again, and the same decision is run that the server ran. Whatever it does not give, byte for byte, is a violation:
//! nothing here knows any rule of its own about what may change.

use std::{collections::BTreeSet, time::Duration};

use thiserror::Error;

use self::{nonces::Nonces, rerun::Rerun};
use countersign_core::{
    documents::metadata::Origin,
    rules::{
        claim::Claim,
        snapshot::{Change, ReadError, Snapshot},
    },
    values::{key::PublicKey, path::RepoPath, time::Timestamp},
};

mod compare;
mod nonces;
mod proposals;
mod rerun;

/// How far the time that a decision wrote into its files may be from the time of its commit. Both are readings of one
/// clock, with a queue between them; the clock may be set, so this can only be plausible.
const MAX_WAIT: Duration = Duration::from_secs(10 * 60);
/// The longest that a server may take to fetch a signers file (D50). A server ends its fetches by then and accepts no
/// setting above it, since a check could not tell such a commit from one that no server made.
pub const MAX_FETCH: Duration = Duration::from_secs(60 * 60);
/// The shortest expiry of a registration that a server can be configured to have (D15).
const MIN_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

/// One commit, besides the states before and after it.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The whole message, as it is recorded.
    pub message: &'a str,
    /// Of the commit, to the second.
    pub time: Timestamp,
    /// Every file that is not the same before and after.
    pub touched: &'a BTreeSet<RepoPath>,
    /// Whether there is no commit before it.
    pub is_first: bool,
}

/// Checks the commits of one history, from the oldest on.
#[derive(Debug)]
pub struct Replay {
    speaks_for: SpeaksFor,
    nonces: Nonces,
}

/// Whether a signers file of this origin may speak for this project, by the URL alone; if not, why.
pub type SpeaksFor = fn(&Origin, &RepoPath) -> Result<(), String>;

/// What is wrong with a commit, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What it is about first. Never empty, unless the commit touches nothing.
    pub files: Vec<RepoPath>,
    pub fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
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
    #[error("it is made complete, and the signatures do not reach the threshold in force")]
    NotComplete,
    #[error("the signatures reach the threshold in force, and it is not made complete")]
    Complete,
    #[error("it cannot be used: {0}")]
    Unreadable(String),
    #[error("it is missing, and what the commit claims to be cannot be without it")]
    Absent,
    #[error("it holds no signature of {0}, who is said to have signed")]
    NoSignature(PublicKey),
    #[error("the stored request does not prove what it is kept for: {0}")]
    Request(String),
    #[error("the stored request was used before: its nonce is not new")]
    UsedNonce,
    #[error("it says {0}, and the server writes whole seconds")]
    Fraction(Timestamp),
    #[error("it cannot lie here: {0}")]
    Misplaced(String),
    #[error("it says that this was done at {stated}, and the commit was made at {commit}")]
    Time { stated: Timestamp, commit: Timestamp },
    #[error("it was added, which is no part of what the commit claims to be")]
    Added,
    #[error("it was changed, which is no part of what the commit claims to be")]
    Changed,
    #[error("it was removed, which is no part of what the commit claims to be")]
    Removed,
    /// The file comes first; behind it stand those that say what it should be. Which of them is false, nobody can tell.
    #[error("its content is not what the rules give for what else the commit stored")]
    Different,
    #[error("it was removed, and the rules give it a new content")]
    Lost,
    #[error("it was not written, and the rules demand it")]
    NotWritten,
    #[error("it is still there, and the rules remove it")]
    NotRemoved,
}

impl Violation {
    fn at(file: &RepoPath, fault: Fault) -> Self {
        Self { files: vec![file.clone()], fault }
    }

    /// About these files as well.
    fn of_all(mut self, files: &BTreeSet<RepoPath>) -> Self {
        let others = files.iter().filter(|file| !self.files.contains(file)).cloned().collect::<Vec<_>>();
        self.files.extend(others);
        self
    }
}

impl From<ReadError> for Violation {
    fn from(error: ReadError) -> Self {
        Self { files: vec![error.path], fault: Fault::Unreadable(error.reason) }
    }
}

impl Replay {
    pub fn new(speaks_for: SpeaksFor) -> Self {
        Self { speaks_for, nonces: Nonces::default() }
    }

    /// Gives the change that the rules make, if it is exactly the one between the two states.
    pub fn check(
        &mut self,
        before: &impl Snapshot,
        after: &impl Snapshot,
        step: &Step<'_>,
    ) -> Result<Change, Vec<Violation>> {
        let rerun = self.find_and_rerun(before, after, step);
        let Rerun { change, evidence, stated, outcome } =
            rerun.map_err(|violation| vec![violation.of_all(step.touched)])?;
        let mut violations: Vec<Violation> = outcome.into_iter().collect();
        if violations.is_empty() && change.recorded_message() != step.message {
            let title = change.message.lines().next().unwrap_or_default().to_owned();
            let nothing = Violation { files: Vec::new(), fault: Fault::OtherMessage(title) };
            violations.push(nothing.of_all(step.touched));
        }
        violations.extend(stated.and_then(|(file, stated)| check_time(&file, stated, step.time)));
        for mut violation in compare::compare(&change, before, after, step.touched) {
            if violation.fault == Fault::Different {
                violation = violation.of_all(&evidence.intersection(step.touched).cloned().collect());
            }
            violations.push(violation);
        }
        if violations.is_empty() { Ok(change) } else { Err(violations) }
    }

    fn find_and_rerun(
        &mut self,
        before: &impl Snapshot,
        after: &impl Snapshot,
        step: &Step<'_>,
    ) -> Result<Rerun, Violation> {
        let whole = |fault| Violation { files: Vec::new(), fault };
        if step.touched.is_empty() {
            return Err(whole(Fault::Nothing));
        }
        let claim = Claim::parse(step.message).ok_or_else(|| whole(Fault::UnknownMessage))?;
        if step.is_first != (claim == Claim::Create) {
            return Err(whole(Fault::WrongBeginning));
        }
        self.rerun(&claim, before, after, step.time)
    }
}

fn check_time(file: &RepoPath, stated: Timestamp, commit: Timestamp) -> Option<Violation> {
    let apart = stated.ahead_of(commit).or_else(|| commit.ahead_of(stated));
    let is_plausible = apart.is_some_and(|apart| apart <= MAX_WAIT);
    (!is_plausible).then(|| Violation::at(file, Fault::Time { stated, commit }))
}

/// What the clock may have shown when a request arrived that was carried out at `time`, after waiting no longer than
/// `wait`.
fn around(time: Timestamp, wait: Duration) -> (Timestamp, Timestamp) {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    (shift(time, -seconds(wait)), shift(time, seconds(MAX_WAIT)))
}

/// The last moment of a second.
fn end_of(second: Timestamp) -> Timestamp {
    shift(second, 1)
}

/// A time that leaves the calendar stays where it was.
fn shift(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(time.unix_seconds().saturating_add(seconds)).unwrap_or(time)
}
