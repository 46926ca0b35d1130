//! What a team could still do if keys were lost, and a thief if keys were stolen, played out with the real decisions (D145).

mod cast;
mod outcome;
mod stage;

use std::collections::BTreeSet;

use countersign_core::{
    documents::signers::SignersFile,
    values::{key::PublicKey, time::Timestamp},
};

pub use self::outcome::{DrillAttempt, DrillFault, DrillStep, Nuisance};
use self::stage::Stage;
use crate::strength::Act;

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

/// Plays both sides, each on a copy of its own. `now`: any time; the file may be of a later one.
pub fn play(file: &SignersFile, question: &DrillQuestion, now: Timestamp) -> Result<Drill, DrillFault> {
    let stage = Stage::found(file, now)?;
    let gone: BTreeSet<PublicKey> = question.lost.union(&question.stolen).copied().collect();
    let everyone = stage.actors(|key| !question.lost.contains(key));
    let team = stage.actors(|key| !gone.contains(key));
    let thieves = stage.actors(|key| question.stolen.contains(key));
    let try_team = |act| {
        let attempt = stage.try_team(act, &team, &gone, &thieves);
        if attempt.succeeds || question.stolen.is_empty() {
            return attempt;
        }
        let with_stolen = stage.try_team(act, &everyone, &gone, &thieves);
        if with_stolen.succeeds { DrillAttempt { takes_stolen_keys: true, ..with_stolen } } else { attempt }
    };
    let is_stolen = !thieves.is_empty();
    let try_thief = |stage: &Stage| ACTS.map(|act| stage.try_thief(act, &thieves, &everyone)).to_vec();
    let rotated = stage.rotate_team(&everyone, &gone, &thieves).1;
    Ok(Drill {
        team: ACTS.map(try_team).to_vec(),
        thief: if is_stolen { try_thief(&stage) } else { Vec::new() },
        nuisances: stage.list_nuisances(&thieves),
        thief_after_rotation: rotated.filter(|_| is_stolen).map(|stage| try_thief(&stage)),
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
