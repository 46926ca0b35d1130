//! Replaying a commit: whether the rules, in the state before it, give exactly what it changed.
//!
//! The message says what a commit claims to be. From that and from what the commit stored, the request is put together
//! again, and the same decision is run that the server ran. Whatever it does not give, byte for byte, is a violation:
//! nothing here knows any rule of its own about what may change.

mod proposals;
mod rerun;
pub mod violation;

use std::collections::BTreeSet;

use countersign_api::event::Claim;
use countersign_core::rules::snapshot::{Change, Snapshot};
use countersign_core::values::{path::RepoPath, time::Timestamp};

pub use crate::audit::replay::rerun::{Replay, SpeaksFor};
pub use crate::audit::replay::violation::{MAX_FETCH, MIN_EXPIRY, ReplayFault, Violation};
use crate::audit::replay::{rerun::Between, rerun::Rerun, violation::MAX_WAIT};

// Checking one commit: what is between the two states beside what the rules give.

/// One commit, besides the states before and after it.
#[derive(Debug, Clone, Copy)]
pub struct CommitStep<'a> {
    /// The whole message, as it is recorded.
    pub message: &'a str,
    /// The time of the commit, to the second.
    pub time: Timestamp,
    /// Every file that is not the same before and after.
    pub touched: &'a BTreeSet<RepoPath>,
    /// Whether there is no commit before it.
    pub is_first: bool,
}

impl Replay {
    /// Gives the change that the rules make, if it is exactly the one between the two states.
    pub fn check<S: Snapshot>(
        &mut self,
        before: &S,
        after: &S,
        step: &CommitStep<'_>,
    ) -> Result<Change, Vec<Violation>> {
        let between = Between { before, after, time: step.time };
        let rerun = step.claim().and_then(|claim| self.rerun(&claim, &between));
        let Rerun { change, evidence, stated, outcome } =
            rerun.map_err(|violation| vec![violation.of_all(step.touched)])?;
        let mut violations: Vec<Violation> = outcome.into_iter().collect();
        if violations.is_empty() && change.recorded_message() != step.message {
            let title = change.message.lines().next().unwrap_or_default().to_owned();
            let nothing = Violation { files: Vec::new(), fault: ReplayFault::OtherMessage(title) };
            violations.push(nothing.of_all(step.touched));
        }
        violations.extend(stated.and_then(|(file, stated)| check_time(&file, stated, step.time)));
        for mut violation in compare(&change, &between, step.touched) {
            if violation.fault == ReplayFault::Different {
                violation = violation.of_all(&evidence.intersection(step.touched).cloned().collect());
            }
            violations.push(violation);
        }
        if violations.is_empty() { Ok(change) } else { Err(violations) }
    }
}

impl CommitStep<'_> {
    /// What the commit claims to be.
    fn claim(&self) -> Result<Claim, Violation> {
        let whole = |fault| Violation { files: Vec::new(), fault };
        if self.touched.is_empty() {
            return Err(whole(ReplayFault::Nothing));
        }
        let claim = Claim::parse(self.message).ok_or_else(|| {
            whole(ReplayFault::Other("the commit says nothing that the server says in a message"))
        })?;
        let fits = self.is_first == (claim == Claim::Create);
        if fits { Ok(claim) } else { Err(whole(ReplayFault::WrongBeginning)) }
    }
}

fn check_time(file: &RepoPath, stated: Timestamp, commit: Timestamp) -> Option<Violation> {
    let apart = stated.ahead_of(commit).or_else(|| commit.ahead_of(stated));
    let is_plausible = apart.is_some_and(|apart| apart <= MAX_WAIT);
    (!is_plausible).then(|| Violation::at(file, ReplayFault::Time { stated, commit }))
}

/// Reads every file that the change writes, also where it expects the content that was there before: what cannot be
/// read is a violation, too.
fn compare(
    change: &Change,
    between: &Between<'_, impl Snapshot>,
    touched: &BTreeSet<RepoPath>,
) -> Vec<Violation> {
    let Between { before, after, .. } = *between;
    let (mut violations, other) = (Vec::new(), ReplayFault::Other);
    for (path, expected) in &change.files {
        let found = match after.read(path) {
            Ok(found) => found,
            Err(error) => {
                violations.push(error.into());
                continue;
            }
        };
        let fault = match (expected, found) {
            (Some(expected), Some(found)) if *expected == found => continue,
            (None, None) => continue,
            (Some(_), Some(_)) => ReplayFault::Different,
            (Some(_), None) if touched.contains(path) => {
                other("it was removed, but the rules give it new content")
            }
            (Some(_), None) => other("it was not written, but the rules require it"),
            (None, Some(_)) => other("it is still there, but the rules remove it"),
        };
        violations.push(Violation::at(path, fault));
    }
    for path in touched.iter().filter(|path| !change.files.contains_key(*path)) {
        let fault = match (before.contains(path), after.contains(path)) {
            (false, _) => "it was added, which is not part of what the commit claims to be",
            (true, true) => "it was changed, which is not part of what the commit claims to be",
            (true, false) => "it was removed, which is not part of what the commit claims to be",
        };
        violations.push(Violation::at(path, ReplayFault::Other(fault)));
    }
    violations
}
