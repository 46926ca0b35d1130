//! What must hold, at every state and at every step. Nothing here asks the rules what they think.

pub mod documents;
pub mod objections;
pub mod proofs;
pub mod rebuilds;
pub mod replay;
pub mod states;
pub mod steps;
pub mod waiting;

use std::{cell::RefCell, collections::HashSet};

use crate::contents::ContentId;

pub type Held = Result<(), Broken>;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub invariant: Invariant,
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Every group's threshold is reached by distinct listed keys over exactly these bytes, and only then it is
    /// complete.
    CompleteMeansQuorum,
    /// Signers change only with consent of those before and of all who are added.
    SignersNeedConsent,
    /// What is complete keeps its index, its signers and its signatures.
    CompleteNeverChanges,
    /// No file of a revoked release changes, and it was revoked by those who may.
    RevokedForEver,
    HistoryOnlyGrows,
    /// A signature adds its own key, once, and nothing else.
    OneKeyCountsOnce,
    /// A key changes only what its roles allow.
    UnlistedChangesNothing,
    ProjectsApart,
    /// A request changes nothing but what it is about.
    NothingElseChanges,
    SupersededComesBack,
    RotationCompletesNothing,
    /// A release that collects is withdrawn by those who may. Its path is free, and one record is left.
    WithdrawnIsFree,
    /// An objection is its author's, one for each key, and changes nothing else.
    ObjectionsBlockNothing,
    /// What stands against a content is kept when that content goes.
    ObjectionsStayReadable,
    /// What a builder states is its own, about this index, and stays as it is once the release is complete.
    RebuildsAreKept,
    /// A release is reproduced as a recount of what is stored says, and verifies only then if that is required.
    ReproductionAgrees,
    /// A text that someone signed is a document of one kind.
    TextsAreOfOneKind,
    /// Signatures in other formats are of keys that signed the index, over its sums, and go when theirs go.
    FormatsFollow,
    /// A rotation waits for the delay in force, unless the masters agreed. The history tells it.
    DelayIsKept,
    /// Masters alone veto. What they vetoed does not take effect.
    VetoByMasters,
    IndexEqualsRebuilt,
    /// A replay accepts every step, and refuses it with one byte changed.
    ReplayRepeats,
    /// Offline verification accepts exactly what is complete and not revoked.
    OfflineAgrees,
    /// The status map of the log, and the staple, say what the state says.
    StapleAgrees,
    /// People who are enough and willing can complete, rotate and revoke.
    NoOneLockedOut,
    /// The rules can read every state that they made.
    StatesAreSound,
}

impl Invariant {
    pub fn broken<T>(self, what: impl Into<String>) -> Result<T, Broken> {
        Err(Broken { invariant: self, what: what.into() })
    }

    pub fn hold(self, holds: bool, what: &str) -> Held {
        if holds { Ok(()) } else { self.broken(what) }
    }
}

/// What was checked before: the same contents give the same answer.
#[derive(Debug, Default)]
pub struct Checked {
    seen: RefCell<HashSet<(u8, Vec<Option<ContentId>>)>>,
}

impl Checked {
    /// Runs a check that depends on these contents alone, unless it was run already.
    pub fn once(&self, kind: u8, on: &[Option<ContentId>], check: impl FnOnce() -> Held) -> Held {
        let key = (kind, on.to_vec());
        if self.seen.borrow().contains(&key) {
            return Ok(());
        }
        check()?;
        self.seen.borrow_mut().insert(key);
        Ok(())
    }
}
