//! What lies between consent and force: a time to wait, in which the masters can veto (D130–D136).

use countersign_core::documents::{layout, statement::StatementKind, statement::Veto};
use countersign_core::rules::decide::{activate::activate_due, statement::veto, update::update};
use countersign_core::rules::{snapshot::Snapshot as _, stored, stored::StoredProposal};
use countersign_core::values::digest::Sha512;

use crate::drill::stage::{Actor, DrillStep, Opponents, SECOND, Stage, sign_statement};
use crate::words::shown_hours;

impl Stage {
    /// Settles a rotation to which everyone who has to has agreed. Gives whether the new signers take effect.
    pub(super) fn settle(
        &mut self,
        steps: &mut Vec<DrillStep>,
        actors: &[Actor],
        opponents: &Opponents<'_>,
    ) -> bool {
        if self.is_waiting() {
            steps.push(DrillStep::of_no_one(format!("the new signers wait {}", self.shown_delay())));
            let is_stopped = !self.agree_as_masters(steps, actors)
                && (self.veto_meanwhile(steps, opponents.veto)
                    || self.replace_meanwhile(steps, opponents.replace));
            if is_stopped {
                return false;
            }
            if self.is_waiting() && !self.let_time_pass() {
                steps.push(DrillStep::of_no_one("the new signers do not take effect"));
                return false;
            }
        }
        steps.push(DrillStep::of_no_one("the new signers are in force"));
        true
    }

    fn is_waiting(&self) -> bool {
        self.scratch.contains(&layout::pending_signers(&self.project))
    }

    fn shown_delay(&self) -> String {
        let active = stored::active_signers(&self.scratch, &self.project).ok().flatten();
        active.and_then(|active| active.file.rotation_delay_hours()).map_or_else(String::new, shown_hours)
    }

    /// Signers that the masters agree to do not wait. Gives whether they are in force.
    fn agree_as_masters(&mut self, steps: &mut Vec<DrillStep>, actors: &[Actor]) -> bool {
        let pending = layout::pending_signers(&self.project);
        for actor in actors {
            if self.sign(&pending, actor).is_ok() {
                steps.push(DrillStep::by(&actor.signer, "signs them too"));
                if !self.is_waiting() {
                    steps.push(DrillStep::of_no_one("the masters agree, so no one has to wait"));
                    return true;
                }
            }
        }
        false
    }

    /// Gives whether the other side's masters are enough to stop it.
    fn veto_meanwhile(&mut self, steps: &mut Vec<DrillStep>, opponents: &[Actor]) -> bool {
        let file = layout::pending_signers(&self.project);
        let proposal = StoredProposal::load(&self.scratch, &file).ok().flatten();
        let active = stored::active_signers(&self.scratch, &self.project).ok().flatten();
        let (Some(proposal), Some(active)) = (proposal, active) else { return false };
        let document = Veto {
            veto: "a drill".to_owned(),
            project_id: self.project.clone(),
            signers_file_digest: proposal.digest(),
            previous: Sha512::of(&active.bytes),
            timestamp: self.now.to_whole_seconds(),
        };
        let document = document.write();
        for opponent in opponents {
            let statement = sign_statement(StatementKind::Veto, &file, &document, opponent);
            let Ok((change, outcome)) = veto(&self.scratch, &statement, self.now) else { continue };
            self.scratch.apply(&change);
            if outcome.in_force {
                steps.push(DrillStep::by(&opponent.signer, "signs a veto in time: the new signers are gone"));
                return true;
            }
            steps.push(DrillStep::by(&opponent.signer, "signs a veto: more masters are needed"));
        }
        false
    }

    /// Gives whether one of the other side can put another file in the place of the one that waits, which it can do each
    /// time (D174).
    fn replace_meanwhile(&mut self, steps: &mut Vec<DrillStep>, opponents: &[Actor]) -> bool {
        let Some(text) = self.next_text(3 * SECOND) else { return false };
        for opponent in opponents {
            let done = update(&self.scratch, &self.proposal(&text, opponent), self.now);
            if let Ok((change, _)) = done {
                self.scratch.apply(&change);
                let step = "puts another proposal in their place in time, and can do so each time";
                steps.push(DrillStep::by(&opponent.signer, step));
                return true;
            }
        }
        false
    }

    fn let_time_pass(&mut self) -> bool {
        let pending = layout::pending_signers(&self.project);
        let Ok(Some(agreement)) = stored::agreement(&self.scratch, &pending) else { return false };
        self.now = self.now.max(agreement.due_at);
        let Ok((change, ())) = activate_due(&self.scratch, &self.project, self.now) else { return false };
        self.scratch.apply(&change);
        true
    }
}
