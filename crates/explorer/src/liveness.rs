//! No state locks anyone out. Each goal has a rank, which says how many requests are still needed; from every state
//! where it is not reached, some request of people who may lowers it. Ranks cannot fall for ever, and the state that
//! the request leads to is visited as well. So the goal can be reached from every state of the world.

use std::rc::Rc;

use countersign_core::values::time::Timestamp;

use crate::action::{Action, Got, Offered, Says, Seen, Word};
use crate::invariants::documents::{
    Keys, Reader, SetDocument, SignersDocument, StatedDocument, can_consent, digest_text, missing,
    missing_consent, read_said, read_stated, read_time, union,
};
use crate::invariants::{steps::can_withdraw, waiting::WaitDocument};
use crate::roles::{
    AGREED, BEGUN, BEGUN_SET, COLLECTING, COMPLETE, COPY, FILE, INDEX, OBJECTIONS, REBUILDS, REVOKED, SET,
    VETO, VETO_SET,
};
use crate::view::{Facts, ProjectFacts, ReleaseSlots};
use crate::{contents::ContentId, contents::Contents, world::World};

/// The rank before anything was begun.
const FAR: usize = 1_000;

#[derive(Debug, Clone, Copy)]
pub struct Goals<'a> {
    pub world: &'a World,
    pub contents: &'a Contents,
    pub reader: &'a Reader,
    /// The signers files of each project, all that there can be.
    pub planned: &'a [Vec<ContentId>],
}

impl Goals<'_> {
    /// Ranks the goal to put the next signers into effect, as long as the world has one.
    pub fn rank_rotation(&self, n: usize, project: &ProjectFacts, clock: u8) -> usize {
        let now = self.world.clocks[usize::from(clock)].to_string();
        let active = self.signers(project.active[FILE]);
        let to_come = (self.planned[n].len() + 1).saturating_sub(project.history.len()) * 2 * FAR;
        if let Some(wait) = self.wait(project) {
            let seconds = |clock: &Timestamp| clock.unix_seconds();
            let is_due = wait.due_at <= seconds(&self.world.clocks[usize::from(clock)]);
            // Where the world has no time that is late enough, nothing is missing but time.
            let comes = self.world.clocks.iter().any(|clock| wait.due_at <= seconds(clock));
            return if comes { to_come + 2 - usize::from(is_due) } else { 0 };
        }
        if let (Some(file), Some(set)) = (project.pending[FILE], project.pending[SET]) {
            let signed = self.reader.set(self.contents, set, file).map(|set| set.valid.clone());
            let proposed = self.signers(Some(file));
            let needed =
                proposed.map(|it| missing_consent(active.as_deref(), &it, &signed.unwrap_or_default()));
            return to_come + 3 * needed.unwrap_or_default();
        }
        let vetoed = |file: ContentId| {
            let digest = digest_text(self.contents.bytes(file));
            project.vetoed.iter().any(|(dir, _)| digest.starts_with(&format!("sha512:{dir:016x}")))
        };
        let later = |file: &ContentId| {
            if vetoed(*file) {
                return false;
            }
            let file = self.signers(Some(*file)).filter(|file| file.timestamp <= now);
            file.is_some_and(|file| active.as_ref().is_none_or(|active| active.timestamp < file.timestamp))
        };
        if self.planned[n].iter().any(later) { to_come + FAR } else { 0 }
    }

    fn wait(&self, project: &ProjectFacts) -> Option<WaitDocument> {
        WaitDocument::read(self.reader, self.contents, project.beside[AGREED]?)
    }

    pub fn rank_completion(&self, project: &ProjectFacts, release: &ReleaseSlots) -> usize {
        let (Some(index), Some(copy), Some(set)) = (release[INDEX], release[COPY], release[COLLECTING])
        else {
            let is_open = release[INDEX].is_none() && project.active[FILE].is_some();
            return if is_open { FAR } else { 0 };
        };
        let set = self.reader.set(self.contents, set, index);
        let copy = self.reader.signers(self.contents, copy);
        set.zip(copy).map_or(FAR, |(set, copy)| missing(&copy.artifact, &set.valid))
    }

    pub fn rank_revocation(&self, project: &ProjectFacts, release: &ReleaseSlots) -> usize {
        let Some(active) = self.signers(project.active[FILE]) else { return 0 };
        if release[COMPLETE].is_none() || release[REVOKED].is_some() {
            return 0;
        }
        let begun = release[BEGUN].zip(release[BEGUN_SET]);
        let begun = begun.and_then(|(document, set)| self.reader.set(self.contents, set, document));
        1 + missing(&active.revocation, &begun.map(|set| set.valid.clone()).unwrap_or_default())
    }

    /// Whether the rules must accept this request: a right signature of someone who can sign and has not; a withdrawal,
    /// an objection or a veto of someone who may; and what is due.
    pub fn must_accept(&self, facts: &Facts, clock: u8, action: Action) -> bool {
        match action {
            Action::SignIndex { project, release, by, offered } if offered.is_right() => {
                let release = &facts.projects[usize::from(project)].releases[usize::from(release)];
                let found = self.signers(release[COPY]).zip(self.set(release[COLLECTING], release[INDEX]));
                found.is_some_and(|(copy, set)| self.is_asked(&union(&copy.artifact), &set.all, by))
            }
            Action::SignProposal { project, by, offered: Offered::Right } => {
                let project = &facts.projects[usize::from(project)];
                let active = self.signers(project.active[FILE]);
                let set = self.set(project.pending[SET], project.pending[FILE]);
                let found = self.signers(project.pending[FILE]).zip(set);
                found.is_some_and(|(file, set)| {
                    self.is_asked(&can_consent(active.as_deref(), &file), &set.all, by)
                })
            }
            Action::Withdraw { project, release, by, seen: Seen::This } => {
                let project = &facts.projects[usize::from(project)];
                let release = &project.releases[usize::from(release)];
                let active = self.signers(project.active[FILE]).filter(|_| release[COLLECTING].is_some());
                active.is_some_and(|active| {
                    can_withdraw(self.reader, self.contents, &active, release).contains(&self.key(by))
                })
            }
            Action::Object { project, release, word, by, offered: Offered::Right } => {
                let project = &facts.projects[usize::from(project)];
                self.must_hear(project, &project.releases[usize::from(release)], word, by)
            }
            Action::Rebuild { project, release, got, by, offered: Offered::Right } if got.is_right() => {
                let project = &facts.projects[usize::from(project)];
                self.must_record(project, &project.releases[usize::from(release)], got, by)
            }
            Action::Veto {
                project,
                says: says @ (Says::First | Says::Second),
                by,
                offered: Offered::Right,
            } => self.must_veto(&facts.projects[usize::from(project)], clock, says, by),
            Action::Activate { project } => {
                let now = self.world.clocks[usize::from(clock)].unix_seconds();
                self.wait(&facts.projects[usize::from(project)]).is_some_and(|wait| wait.due_at <= now)
            }
            Action::Register { .. }
            | Action::Update { .. }
            | Action::SignProposal { .. }
            | Action::SignIndex { .. }
            | Action::Assets { .. }
            | Action::Revoke { .. }
            | Action::Withdraw { .. }
            | Action::Object { .. }
            | Action::Rebuild { .. }
            | Action::Veto { .. }
            | Action::Drop { .. }
            | Action::SetClock { .. } => false,
        }
    }

    /// Whether the rules must accept a word about a release.
    fn must_hear(&self, project: &ProjectFacts, release: &ReleaseSlots, word: Word, by: u8) -> bool {
        let said = release[OBJECTIONS].and_then(|id| self.reader.value(self.contents, id));
        let said = said.and_then(|said| read_said(&said)?.remove(&self.key(by)));
        let is_open = release[COLLECTING].or(release[COMPLETE]).is_some();
        let stands = said.as_ref().is_some_and(|said| said.objection.is_some());
        let lists = |file: Rc<SignersDocument>| file.signers.contains(&self.key(by));
        is_open
            && match word {
                Word::First => said.is_none() && self.signers(project.active[FILE]).is_some_and(lists),
                Word::TakenBack => {
                    stands && said.is_some_and(|said| said.objection != Word::Again.text().map(str::to_owned))
                }
                Word::Again | Word::OfOther | Word::Ahead => false,
            }
    }

    /// Whether the rules must accept what a builder states.
    fn must_record(&self, project: &ProjectFacts, release: &ReleaseSlots, got: Got, by: u8) -> bool {
        let stated = release[REBUILDS].and_then(|id| self.reader.value(self.contents, id));
        let stated = stated.and_then(|stated| read_stated(&stated)?.remove(&self.key(by)));
        let builds = |file: Option<ContentId>| {
            self.signers(file).is_some_and(|file| file.builders().contains(&self.key(by)))
        };
        let is_asked = builds(project.active[FILE]) && builds(release[COPY]);
        let clock = self.world.clocks[0].unix_seconds();
        let is_later = |stated: StatedDocument| {
            read_time(&stated.timestamp).is_some_and(|earlier| earlier < clock + got.seconds())
        };
        is_asked
            && match (release[COLLECTING], release[COMPLETE]) {
                (Some(_), _) => stated.is_none_or(is_later),
                (None, Some(_)) => stated.is_none(),
                (None, None) => false,
            }
    }

    fn must_veto(&self, project: &ProjectFacts, clock: u8, says: Says, by: u8) -> bool {
        let active = self.signers(project.active[FILE]).filter(|_| project.pending[FILE].is_some());
        let now = self.world.clocks[usize::from(clock)].unix_seconds();
        let is_late = self.wait(project).is_some_and(|wait| wait.due_at <= now);
        let begun = project.beside[VETO].and_then(|id| self.reader.value(self.contents, id));
        let is_same = begun.is_none_or(|begun| begun["veto"] == says.text());
        let signed = self.set(project.beside[VETO_SET], project.beside[VETO]);
        let signed = signed.map(|set| set.all.clone()).unwrap_or_default();
        !is_late && is_same && active.is_some_and(|active| self.is_asked(&union(&active.master), &signed, by))
    }

    fn set(&self, set: Option<ContentId>, of: Option<ContentId>) -> Option<Rc<SetDocument>> {
        self.reader.set(self.contents, set?, of?)
    }

    fn signers(&self, id: Option<ContentId>) -> Option<Rc<SignersDocument>> {
        self.reader.signers(self.contents, id?)
    }

    fn key(&self, by: u8) -> [u8; 32] {
        *self.world.people[usize::from(by)].public.as_bytes()
    }

    /// Whether this person can sign and has not.
    fn is_asked(&self, can: &Keys, signed: &Keys, by: u8) -> bool {
        can.contains(&self.key(by)) && !signed.contains(&self.key(by))
    }
}
