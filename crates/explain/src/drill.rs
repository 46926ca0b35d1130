//! What a team could still do if keys were lost, and a thief if keys were stolen, played out with the real decisions (D145).

mod stage;

use std::{collections::BTreeSet, fmt};

use countersign_core::{
    documents::signers::{Signer, SignersFile},
    values::{key::PublicKey, time::Timestamp},
};

use self::stage::{Actor, Stage};
use crate::{signers::named_signer, strength::Act};

/// Keys of a signers file.
#[derive(Debug, Clone, Default)]
pub struct DrillQuestion {
    pub lost: BTreeSet<PublicKey>,
    pub stolen: BTreeSet<PublicKey>,
}

#[derive(Debug, Clone)]
pub struct Drill {
    /// Those whose keys are neither lost nor stolen.
    pub team: Vec<DrillAttempt>,
    /// What the thief tries with the stolen keys. Empty if none are stolen.
    pub thief: Vec<DrillAttempt>,
    /// What a thief can do who cannot complete anything.
    pub nuisances: Vec<Nuisance>,
    /// What the thief tries after the team has put new keys in the place of all that are lost or stolen. `None` if no key is
    /// stolen, or the team cannot do that.
    pub thief_after_rotation: Option<Vec<DrillAttempt>>,
}

/// One act that was tried.
#[derive(Debug, Clone)]
pub struct DrillAttempt {
    pub act: Act,
    pub succeeds: bool,
    /// It succeeds only if owners of stolen keys still have them, and sign as well.
    pub takes_stolen_keys: bool,
    pub steps: Vec<DrillStep>,
}

/// What somebody did, and how the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrillStep {
    /// `None` where it is no one in particular.
    pub who: Option<Signer>,
    pub text: String,
}

/// What one listed key allows, whatever the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nuisance {
    RegisterReleases,
    ReplaceProposals,
    BeginRevocations,
}

/// Plays both sides, each on a copy of its own. `now`: any time; the file may be of a later one.
pub fn play(file: &SignersFile, question: &DrillQuestion, now: Timestamp) -> Result<Drill, DrillFault> {
    let stage = Stage::found(file, now)?;
    let gone: BTreeSet<PublicKey> = question.lost.union(&question.stolen).copied().collect();
    let everyone = stage.actors(|key| !question.lost.contains(key));
    let team = stage.actors(|key| !gone.contains(key));
    let thieves = stage.actors(|key| question.stolen.contains(key));
    let try_team = |act| {
        let attempt = stage.try_team(act, &team, &gone);
        if attempt.succeeds || question.stolen.is_empty() {
            return attempt;
        }
        let with_stolen = stage.try_team(act, &everyone, &gone);
        if with_stolen.succeeds { DrillAttempt { takes_stolen_keys: true, ..with_stolen } } else { attempt }
    };
    let is_stolen = !thieves.is_empty();
    let rotated = stage.rotate_team(&everyone, &gone).1;
    Ok(Drill {
        team: ACTS.map(try_team).to_vec(),
        thief: if is_stolen { ACTS.map(|act| stage.try_thief(act, &thieves)).to_vec() } else { Vec::new() },
        nuisances: stage.list_nuisances(&thieves),
        thief_after_rotation: rotated
            .filter(|_| is_stolen)
            .map(|stage| ACTS.map(|act| stage.try_thief(act, &thieves)).to_vec()),
    })
}

const ACTS: [Act; 3] = [Act::Release, Act::Rotate, Act::Revoke];

impl Drill {
    /// No one can ever change the signers again.
    pub fn is_locked_out(&self) -> bool {
        self.team.iter().any(|attempt| attempt.act == Act::Rotate && !attempt.succeeds)
    }

    /// A thief who rotates takes the project over.
    pub fn is_taken_over(&self) -> bool {
        self.thief.iter().any(|attempt| attempt.act == Act::Rotate && attempt.succeeds)
    }
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
    fn by(actor: &Actor, text: impl Into<String>) -> Self {
        Self { who: Some(actor.signer.clone()), text: text.into() }
    }

    fn of_no_one(text: impl Into<String>) -> Self {
        Self { who: None, text: text.into() }
    }
}

impl fmt::Display for Nuisance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RegisterReleases => {
                "register releases under any name that is free, and wait for others to sign them"
            }
            Self::ReplaceProposals => "put another proposal in the place of yours, again and again",
            Self::BeginRevocations => "begin a revocation of every release, which all pages then show",
        })
    }
}

/// The name that the real file gives a key.
fn name_of(file: &SignersFile, key: PublicKey) -> Signer {
    named_signer(file, key)
}
