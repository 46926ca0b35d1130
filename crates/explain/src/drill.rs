//! What a team could still do if keys were lost, and a thief if keys were stolen, played out with the real decisions
//! (D145).

mod outcome;
mod stage;

use std::collections::BTreeSet;

use countersign_core::{documents::signers::SignersFile, values::key::PublicKey, values::time::Timestamp};

pub use crate::drill::outcome::{DrillAttempt, DrillFault, DrillStep, Nuisance};
use crate::{drill::stage::Stage, strength::Act};

/// Keys of a signers file.
#[derive(Debug, Clone, Default)]
pub struct DrillQuestion {
    pub lost: BTreeSet<PublicKey>,
    pub stolen: BTreeSet<PublicKey>,
}

#[derive(Debug, Clone)]
pub struct Drill {
    /// Attempts of those whose keys are neither lost nor stolen.
    pub team: Vec<DrillAttempt>,
    /// Attempts of the thief with the stolen keys. Empty if none are stolen.
    pub thief: Vec<DrillAttempt>,
    /// What a thief can do who cannot complete anything.
    pub nuisances: Vec<Nuisance>,
    /// What the thief tries after the team has put new keys in the place of all that are lost or stolen. `None` if no
    /// key is stolen, or the team cannot do that.
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
        if with_stolen.succeeds {
            return DrillAttempt { takes_stolen_keys: true, ..with_stolen };
        }
        // A blocked key neither vetoes nor replaces (D59, D174).
        let with_block = stage.try_team(act, &team, &gone, &[]);
        DrillAttempt { is_freed_by_block: with_block.succeeds, ..attempt }
    };
    let is_stolen = !thieves.is_empty();
    // The drill does not count on what was stolen, for one side as for the other.
    let try_thief = |stage: &Stage, act| {
        let attempt = stage.try_thief(act, &thieves, &team);
        let is_stopped_by_owners = attempt.succeeds && !stage.try_thief(act, &thieves, &everyone).succeeds;
        DrillAttempt { is_stopped_by_owners, ..attempt }
    };
    let try_all = |stage: &Stage| Act::of(file).map(|act| try_thief(stage, act)).collect();
    let (rotation, rotated) = stage.rotate_team(&everyone, &gone, &thieves);
    Ok(Drill {
        team: Act::of(file).map(try_team).collect(),
        thief: if is_stolen { try_all(&stage) } else { Vec::new() },
        nuisances: stage.list_nuisances(&thieves),
        thief_after_rotation: (is_stolen && rotation.succeeds).then(|| try_all(&rotated)),
    })
}

impl Drill {
    /// Whether neither the team nor a thief can ever change the signers again.
    pub fn is_locked_out(&self) -> bool {
        self.is_lost() && !self.is_taken_over()
    }

    /// A thief who rotates takes the project over.
    pub fn is_taken_over(&self) -> bool {
        self.rotations(&self.thief).any(|attempt| attempt.succeeds)
    }

    /// A thief stops every rotation of the team until the operator blocks the stolen keys (D174).
    pub fn is_held_up(&self) -> bool {
        self.rotations(&self.team).any(|attempt| attempt.is_freed_by_block)
    }

    /// The team can never change the signers again.
    pub fn is_lost(&self) -> bool {
        self.rotations(&self.team).any(|attempt| !attempt.succeeds && !attempt.is_freed_by_block)
    }

    fn rotations<'a>(&self, attempts: &'a [DrillAttempt]) -> impl Iterator<Item = &'a DrillAttempt> {
        attempts.iter().filter(|attempt| attempt.act == Act::Rotate)
    }
}
