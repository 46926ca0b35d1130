//! Asks what must hold of states and steps, and remembers the answers. What depends on a few parts of a state alone is
//! asked once for all states that agree in these parts.

use std::ops::Range;

use crate::action::{Action, ListedAction};
use crate::contents::{ContentId, Contents, EMPTY, PARTS, PartId, State};
use crate::decisions::{Memo, MemoSet};
use crate::invariants::{
    Checked, Held, Invariant, documents::Reader, proofs::ProofCheck, states::StateCheck, steps,
    steps::StepCheck,
};
use crate::roles::{FIRST_RELEASE, IN_FORCE, PROPOSED, RECORD, REPLACED};
use crate::{liveness::Goals, view::Facts, world::ProjectPlan, world::World};

/// How many requests each goal still takes. 0 is reached.
pub type Ranks = [usize; 2 * PARTS];
/// Actions of a world, by bit.
pub type ActionMask = u128;

/// What people can still reach with a part of a project: ranks of goals, and what the rules must accept.
#[derive(Debug, Clone, Copy, Default)]
struct Prospects {
    ranks: [usize; 2],
    must_accept: ActionMask,
}

#[derive(Debug)]
pub struct Judge<'w> {
    pub world: &'w World,
    pub reader: Reader,
    pub checked: Checked,
    /// The signers files of each project, all that there can be.
    planned: Vec<Vec<ContentId>>,
    ids: Vec<String>,
    /// The first part of each project; and, last, where those of all end.
    firsts: Vec<usize>,
    signers_prospects: Memo<(usize, u8, [PartId; 3]), Prospects>,
    release_prospects: Memo<(usize, [PartId; 2]), Prospects>,
    sound_signers: MemoSet<(usize, [PartId; 4])>,
    sound_releases: MemoSet<(usize, [PartId; 3])>,
    sound_steps: MemoSet<(u16, State, State)>,
    admins: Memo<PartId, Option<u8>>,
}

impl<'w> Judge<'w> {
    pub fn new(world: &'w World, contents: &mut Contents) -> Self {
        assert!(world.actions.len() <= ActionMask::BITS as usize, "a world has at most 128 requests");
        let mut planned =
            |plan: &ProjectPlan| plan.files.iter().map(|file| contents.intern(&file.bytes)).collect();
        let planned = world.projects.iter().map(&mut planned).collect();
        let names = contents.names();
        Self {
            world,
            reader: Reader::default(),
            checked: Checked::default(),
            planned,
            ids: names.projects.iter().map(|project| project.id.clone()).collect(),
            firsts: (0..=names.projects.len()).map(|project| names.first_part(project)).collect(),
            signers_prospects: Memo::default(),
            release_prospects: Memo::default(),
            sound_signers: MemoSet::default(),
            sound_releases: MemoSet::default(),
            sound_steps: MemoSet::default(),
            admins: Memo::default(),
        }
    }

    fn goals<'a>(&'a self, contents: &'a Contents) -> Goals<'a> {
        Goals { world: self.world, contents, reader: &self.reader, planned: &self.planned }
    }

    pub fn proofs<'a>(&'a self, contents: &'a Contents) -> ProofCheck<'a> {
        ProofCheck { world: self.world, contents, checked: &self.checked }
    }

    fn project_count(&self) -> usize {
        self.firsts.len() - 1
    }

    /// The first part of a project, and the parts of its releases.
    fn span(&self, n: usize) -> (usize, Range<usize>) {
        (self.firsts[n], self.firsts[n] + FIRST_RELEASE..self.firsts[n + 1])
    }

    /// The rank of each goal, and the requests that the rules must accept here.
    pub fn prospects(&mut self, contents: &Contents, state: &State) -> (Ranks, ActionMask) {
        let (mut ranks, mut must_accept) = (Ranks::default(), 0);
        let mut put = |at: usize, prospects: Prospects| {
            ranks[2 * at..2 * at + 2].copy_from_slice(&prospects.ranks);
            must_accept |= prospects.must_accept;
        };
        for n in 0..self.project_count() {
            let (first, releases) = self.span(n);
            let parts = [IN_FORCE, RECORD, PROPOSED].map(|part| state.parts[first + part]);
            let key = (n, state.clock, parts);
            let known = self.signers_prospects.get(&key).copied();
            put(
                first,
                known.unwrap_or_else(|| {
                    let prospects = self.ask_signers(contents, state, n);
                    self.signers_prospects.insert(key, prospects);
                    prospects
                }),
            );
            for part in releases {
                let key = (part, [parts[0], state.parts[part]]);
                let known = self.release_prospects.get(&key).copied();
                put(
                    part,
                    known.unwrap_or_else(|| {
                        let prospects = self.ask_release(contents, state, n, part - first - FIRST_RELEASE);
                        self.release_prospects.insert(key, prospects);
                        prospects
                    }),
                );
            }
        }
        (ranks, must_accept)
    }

    fn ask_signers(&self, contents: &Contents, state: &State, n: usize) -> Prospects {
        let (goals, facts) = (self.goals(contents), Facts::of(state, contents));
        let rank = goals.rank_rotation(n, &facts.projects[n], state.clock);
        let is_here = |action: &Action| match action {
            Action::SignProposal { project, .. }
            | Action::Veto { project, .. }
            | Action::Activate { project } => usize::from(*project) == n,
            _ => false,
        };
        Prospects { ranks: [rank, 0], must_accept: self.must_accept(&goals, &facts, state.clock, is_here) }
    }

    fn ask_release(&self, contents: &Contents, state: &State, n: usize, release: usize) -> Prospects {
        let (goals, facts) = (self.goals(contents), Facts::of(state, contents));
        let project = &facts.projects[n];
        let slots = &project.releases[release];
        let subject = (u8::try_from(n).ok(), u8::try_from(release).ok());
        let is_here = |action: &Action| match action {
            Action::SignIndex { project, release, .. }
            | Action::Withdraw { project, release, .. }
            | Action::Object { project, release, .. }
            | Action::Rebuild { project, release, .. } => (Some(*project), Some(*release)) == subject,
            _ => false,
        };
        Prospects {
            ranks: [goals.rank_completion(project, slots), goals.rank_revocation(project, slots)],
            must_accept: self.must_accept(&goals, &facts, state.clock, is_here),
        }
    }

    fn must_accept(
        &self,
        goals: &Goals<'_>,
        facts: &Facts,
        clock: u8,
        is_here: impl Fn(&Action) -> bool,
    ) -> ActionMask {
        let actions = (0..).zip(&self.world.actions);
        let must = actions.filter(|(_, action)| is_here(action) && goals.must_accept(facts, clock, **action));
        must.fold(0, |mask, (number, _): (u32, _)| mask | 1 << number)
    }

    /// The lowest ranks that the accepted requests lead to must be lower than these.
    pub fn check_ranks(&self, ranks: &Ranks, lowest: &Ranks) -> Held {
        let stuck = |goal: usize| ranks[goal] != 0 && lowest[goal] >= ranks[goal];
        for n in 0..self.project_count() {
            let (first, releases) = self.span(n);
            let plan = &self.world.projects[n];
            let rule = Invariant::NoOneLockedOut;
            if stuck(2 * first) {
                return rule
                    .broken(format!("no request helps to put the next signers of {} into effect", plan.id));
            }
            for (part, tag) in releases.zip(&plan.releases) {
                if stuck(2 * part) {
                    return rule.broken(format!("no request helps to complete {} {tag}", plan.id));
                }
                if stuck(2 * part + 1) {
                    return rule.broken(format!("no request helps to revoke {} {tag}", plan.id));
                }
            }
        }
        Ok(())
    }

    /// A person who leads a project, if some are in force.
    pub fn admin(&mut self, contents: &Contents, state: &State, n: usize) -> Option<u8> {
        let in_force = state.parts[self.firsts[n] + IN_FORCE];
        let (reader, world) = (&self.reader, self.world);
        *self.admins.entry(in_force).or_insert_with(|| {
            let (_, file) = contents.files(in_force).first()?;
            let admins = reader.signers(contents, *file)?.admins();
            let mut people = (0..).zip(&world.people);
            people.find(|(_, person)| admins.contains(person.public.as_bytes())).map(|(by, _)| by)
        })
    }

    /// Whether a pending file is not for admins to replace: a master has had a part in it, and it waits, or that was
    /// less than the delay ago. The first ends by itself, and the second by time alone.
    pub fn is_kept_for_masters(&self, contents: &Contents, state: &State, n: usize) -> bool {
        let facts = Facts::of(state, contents);
        let now = self.world.clocks[usize::from(state.clock)].unix_seconds();
        steps::is_kept_for_masters(&self.reader, contents, &facts.projects[n], now)
    }

    pub fn check_state(&mut self, contents: &Contents, state: &State) -> Held {
        for n in 0..self.project_count() {
            let (first, releases) = self.span(n);
            let parts = [IN_FORCE, RECORD, PROPOSED, REPLACED].map(|part| state.parts[first + part]);
            if !self.sound_signers.contains(&(n, parts)) {
                let facts = Facts::of(state, contents);
                self.states(contents).check_signers(&facts.projects[n], &self.ids[n])?;
                self.sound_signers.insert((n, parts));
            }
            for part in releases {
                let key = (part, [parts[0], parts[1], state.parts[part]]);
                if !self.sound_releases.contains(&key) {
                    let facts = Facts::of(state, contents);
                    let (project, release) = (&facts.projects[n], part - first - FIRST_RELEASE);
                    self.states(contents).check_release(project, release)?;
                    self.proofs(contents).check_offline(project, n, release)?;
                    self.sound_releases.insert(key);
                }
            }
        }
        let unknown = state.parts[self.firsts[self.firsts.len() - 1]];
        Invariant::StatesAreSound.hold(unknown == EMPTY, "there is a file of no known kind")
    }

    fn states<'a>(&'a self, contents: &'a Contents) -> StateCheck<'a> {
        StateCheck { contents, reader: &self.reader, checked: &self.checked }
    }

    /// Checks a step. `number` is the action's own.
    pub fn check_step(
        &mut self,
        contents: &Contents,
        ListedAction { number, action }: ListedAction,
        before: &State,
        after: &State,
    ) -> Held {
        let (old, new) = self.concern(action, before, after);
        let key = (number, old, new);
        if self.sound_steps.contains(&key) {
            return Ok(());
        }
        let (reader, clock) = (&self.reader, before.clock);
        StepCheck { world: self.world, contents, reader, action, clock }
            .check(&Facts::of(&old, contents), &Facts::of(&new, contents))?;
        self.sound_steps.insert(key);
        Ok(())
    }

    /// The states without the parts that are the same before and after, and that the check of such a step does not look
    /// at. After a rotation it looks at all.
    fn concern(&self, action: Action, before: &State, after: &State) -> (State, State) {
        let (mut old, mut new) = (*before, *after);
        let project = action.project().map_or(0, usize::from);
        let first = self.firsts[project];
        let has_rotated =
            [IN_FORCE, RECORD].iter().any(|part| old.parts[first + part] != new.parts[first + part]);
        let concerns = |part: usize| match action {
            Action::SetClock { .. } => false,
            Action::Register { .. } | Action::SignProposal { .. } | Action::Drop { .. } => {
                [IN_FORCE, PROPOSED].contains(&part)
            }
            Action::Update { .. } => [IN_FORCE, PROPOSED, REPLACED].contains(&part),
            Action::Veto { .. } | Action::Activate { .. } => [IN_FORCE, RECORD, PROPOSED].contains(&part),
            Action::SignIndex { release, .. }
            | Action::Assets { release, .. }
            | Action::Revoke { release, .. }
            | Action::Withdraw { release, .. }
            | Action::Object { release, .. }
            | Action::Rebuild { release, .. } => {
                [IN_FORCE, FIRST_RELEASE + usize::from(release)].contains(&part)
            }
        };
        for at in 0..PARTS {
            let is_here = (first..self.firsts[project + 1]).contains(&at);
            if old.parts[at] == new.parts[at] && !(is_here && (has_rotated || concerns(at - first))) {
                (old.parts[at], new.parts[at]) = (EMPTY, EMPTY);
            }
        }
        (old, new)
    }
}
