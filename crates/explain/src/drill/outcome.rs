//! The attempts of a drill, and what came of them.

use std::fmt;

use countersign_core::documents::signers::Signer;

use crate::strength::Act;

/// One act that was tried.
#[derive(Debug, Clone)]
pub struct DrillAttempt {
    pub act: Act,
    pub succeeds: bool,
    /// Whether it succeeds only if owners of stolen keys still have them, and sign as well.
    pub takes_stolen_keys: bool,
    /// A thief succeeds, but not if owners of stolen keys still have them and veto in time.
    pub is_stopped_by_owners: bool,
    /// The team fails because a thief stops it each time, and succeeds once the operator has blocked the stolen keys.
    pub is_freed_by_block: bool,
    pub steps: Vec<DrillStep>,
}

/// What someone did, and how the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrillStep {
    /// The actor; `None` if it is no one in particular.
    pub who: Option<Signer>,
    pub text: String,
}

/// What one listed key allows, whatever the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nuisance {
    RegisterReleases,
    WithdrawReleases,
    ObjectToReleases,
    ReplaceProposals,
    BeginRevocations,
}

/// The file cannot be played, which no valid file comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrillFault(pub String);

impl fmt::Display for DrillFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DrillFault {}

impl DrillStep {
    pub(super) fn by(signer: &Signer, text: impl Into<String>) -> Self {
        Self { who: Some(signer.clone()), text: text.into() }
    }

    pub(super) fn of_no_one(text: impl Into<String>) -> Self {
        Self { who: None, text: text.into() }
    }
}

impl fmt::Display for Nuisance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RegisterReleases => {
                "register releases under any name that is free, and wait for others to sign them"
            }
            Self::WithdrawReleases => "withdraw every release that still collects signatures",
            Self::ObjectToReleases => "object to every release, which all pages then show",
            Self::ReplaceProposals => "put another proposal in the place of yours, again and again",
            Self::BeginRevocations => "begin a revocation of every release, which all pages then show",
        })
    }
}
