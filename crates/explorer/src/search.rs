//! Breadth first through all states of a world. The first way to a state is kept, so a counterexample is a shortest script.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    time::Instant,
};

use countersign_core::{log::status::Statuses, rules::snapshot::Change};
use countersign_store::snapshot::index::Index;

use crate::{
    action::Action,
    contents::{ContentId, Contents, State},
    facts::Facts,
    invariants::{
        Broken, Checked, Held, Invariant,
        documents::Reader,
        index::{check_rebuilt, check_waiting, updated},
        proofs::{ProofCheck, read_index},
        replay::RecordedStep,
        states::StateCheck,
        steps::StepCheck,
    },
    liveness::Goals,
    requests::{Decision, RESCUE, Requests},
    roles::{FILE, RoleNames},
    symmetry::Symmetry,
    view::View,
    world::{ProjectPlan, World},
};

/// How far to go.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    pub most_states: usize,
    /// Whether people who can stand for each other do.
    pub symmetric: bool,
    /// Whether every byte of one step of each kind is changed for the replay.
    pub every_byte: bool,
    /// Whether classes of equal states are counted besides.
    pub count_classes: bool,
}

impl Extent {
    pub const WHOLE: Self =
        Self { most_states: usize::MAX, symmetric: true, every_byte: false, count_classes: false };
}

#[derive(Debug, Clone)]
pub struct Visited {
    pub states: usize,
    pub steps: u64,
    pub refused: u64,
    pub depth: usize,
    pub replayed: u64,
    pub bytes_changed: u64,
    pub staples: u64,
    pub classes: usize,
    /// Whether every state was visited.
    pub is_whole: bool,
    pub seconds: f64,
}

/// A script of requests, and what does not hold after it.
#[derive(Debug, Clone)]
pub struct Counterexample {
    pub world: &'static str,
    pub script: Vec<String>,
    pub broken: Broken,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:?} does not hold in the world {:?}: {}",
            self.broken.invariant, self.world, self.broken.what
        )?;
        self.script.iter().zip(1..).try_for_each(|(line, n)| writeln!(f, "  {n}. {line}"))
    }
}

/// A state on the border of what was visited.
#[derive(Debug)]
struct Node {
    id: u32,
    state: State,
    statuses: Statuses,
    index: Index,
}

#[derive(Debug)]
struct Search<'w> {
    world: &'w World,
    extent: Extent,
    names: RoleNames,
    project_ids: Vec<String>,
    planned: Vec<Vec<ContentId>>,
    contents: Contents,
    requests: Requests<'w>,
    reader: Reader,
    checked: Checked,
    symmetry: Symmetry,
    seen: HashMap<u128, u32>,
    /// Of each state, the one before it and the action between.
    came_from: Vec<(u32, u16)>,
    classes: Option<(Symmetry, HashSet<u128>)>,
    kinds_changed: BTreeSet<String>,
    found: Visited,
}

pub fn explore(world: &World, extent: Extent) -> Result<Visited, Box<Counterexample>> {
    let began = Instant::now();
    let mut search = Search::new(world, extent);
    let begin =
        Node { id: 0, state: State::default(), statuses: Statuses::default(), index: Index::default() };
    let hash = search.symmetry.hash(&search.contents, &begin.state);
    search.seen.insert(hash, 0);
    search.came_from.push((0, 0));
    search.count_class(&begin.state);
    let mut border = vec![begin];
    while !border.is_empty() {
        let mut next = Vec::new();
        for node in border {
            if search.seen.len() >= extent.most_states {
                search.found.is_whole = false;
                return Ok(search.finish(began));
            }
            search.expand(&node, &mut next)?;
        }
        search.found.depth += usize::from(!next.is_empty());
        border = next;
    }
    Ok(search.finish(began))
}

impl<'w> Search<'w> {
    fn new(world: &'w World, extent: Extent) -> Self {
        let names = world.role_names();
        let mut contents = Contents::new(names.clone());
        let mut planned =
            |plan: &ProjectPlan| plan.files.iter().map(|file| contents.intern(&file.bytes)).collect();
        let planned = world.projects.iter().map(&mut planned).collect();
        let is_symmetric = extent.symmetric && !world.equals.is_empty();
        Self {
            world,
            extent,
            project_ids: names.projects.iter().map(|project| project.id.clone()).collect(),
            names,
            planned,
            contents,
            requests: Requests::new(world),
            reader: Reader::default(),
            checked: Checked::default(),
            symmetry: if is_symmetric { Symmetry::of(world) } else { Symmetry::none() },
            seen: HashMap::new(),
            came_from: Vec::new(),
            classes: extent.count_classes.then(|| (Symmetry::of(world), HashSet::new())),
            kinds_changed: BTreeSet::new(),
            found: Visited {
                states: 0,
                steps: 0,
                refused: 0,
                depth: 0,
                replayed: 0,
                bytes_changed: 0,
                staples: 0,
                classes: 0,
                is_whole: true,
                seconds: 0.0,
            },
        }
    }

    fn finish(self, began: Instant) -> Visited {
        let classes = self.classes.map_or(0, |(_, classes)| classes.len());
        Visited { states: self.seen.len(), classes, seconds: began.elapsed().as_secs_f64(), ..self.found }
    }

    fn count_class(&mut self, state: &State) {
        if let Some((symmetry, classes)) = &mut self.classes {
            classes.insert(symmetry.hash(&self.contents, state));
        }
    }

    /// Asks for everything in one state.
    fn expand(&mut self, node: &Node, next: &mut Vec<Node>) -> Result<(), Box<Counterexample>> {
        let facts = Facts::of(&node.state, &self.contents, &self.names);
        let ranks = self.goals().ranks(&facts, node.state.clock);
        let mut lowest = ranks.clone();
        for (number, action) in (0..).zip(&self.world.actions) {
            let taken = self.take(node, &facts, *action, &mut lowest, next, number);
            taken.map_err(|broken| self.counterexample(node.id, Some(*action), broken))?;
        }
        let held = self.goals().check(&ranks, &lowest).and_then(|()| self.check_rescue(node, &facts));
        held.map_err(|broken| self.counterexample(node.id, None, broken))
    }

    fn goals(&self) -> Goals<'_> {
        Goals { world: self.world, contents: &self.contents, reader: &self.reader, planned: &self.planned }
    }

    /// Asks for one thing, and checks what came of it.
    fn take(
        &mut self,
        node: &Node,
        facts: &Facts,
        action: Action,
        lowest: &mut [usize],
        next: &mut Vec<Node>,
        number: u16,
    ) -> Held {
        let (after, change) = match self.requests.decide(&mut self.contents, &node.state, action) {
            Decision::Changed(change) => match self.contents.apply(&node.state, &change) {
                Ok(after) => (after, change),
                Err(error) => return Invariant::StatesAreSound.broken(error),
            },
            Decision::Clock(clock) => (State { clock, ..node.state.clone() }, Change::default()),
            Decision::Nothing => return Ok(()),
            Decision::Refused(refusal) => {
                self.found.refused += 1;
                let is_wrong = self.goals().must_accept(facts, action);
                return Invariant::NoOneLockedOut.hold(!is_wrong, &format!("a signer is refused: {refusal}"));
            }
            Decision::Corrupt(error) => return Invariant::StatesAreSound.broken(error.to_string()),
        };
        self.found.steps += 1;
        let after_facts = Facts::of(&after, &self.contents, &self.names);
        let (world, clock) = (self.world, node.state.clock);
        StepCheck { world, contents: &self.contents, reader: &self.reader, action, clock }
            .check(facts, &after_facts)?;
        let ranks = self.goals().ranks(&after_facts, after.clock);
        lowest.iter_mut().zip(ranks).for_each(|(lowest, rank)| *lowest = (*lowest).min(rank));
        let hash = self.symmetry.hash(&self.contents, &after);
        let sample = (hash >> 64) as u64 ^ u64::from(node.id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let is_new = !self.seen.contains_key(&hash);
        let statuses = self.check_log(node, &after, &after_facts, &change, is_new)?;
        self.check_replay(node, &change, sample)?;
        if !is_new {
            return Ok(());
        }
        let id = u32::try_from(self.seen.len()).expect("fewer states than there are numbers");
        let index = updated(&node.index, &View { contents: &self.contents, state: &after }, &change);
        self.check_state(&after, &after_facts, &index, sample)?;
        if !change.is_empty() && sample.is_multiple_of(self.world.care.staple) {
            self.found.staples += 1;
            let now = self.world.clocks[usize::from(clock)];
            self.proofs().check_staples(&statuses, &after_facts, &change, now)?;
        }
        self.seen.insert(hash, id);
        self.came_from.push((node.id, number));
        self.count_class(&after);
        next.push(Node { id, state: after, statuses, index });
        Ok(())
    }

    fn proofs(&self) -> ProofCheck<'_> {
        ProofCheck { world: self.world, contents: &self.contents, checked: &self.checked }
    }

    fn check_log(
        &self,
        node: &Node,
        after: &State,
        facts: &Facts,
        change: &Change,
        is_new: bool,
    ) -> Result<Statuses, Broken> {
        match node.statuses.apply(change, read_index(&self.contents, after)) {
            Ok((statuses, records)) => {
                if is_new || !records.is_empty() {
                    self.proofs().check_statuses(&statuses, facts)?;
                }
                Ok(statuses)
            }
            Err(error) => Invariant::StapleAgrees.broken(error.to_string()),
        }
    }

    fn check_replay(&mut self, node: &Node, change: &Change, sample: u64) -> Held {
        if change.is_empty() {
            return Ok(());
        }
        let now = self.world.clocks[usize::from(node.state.clock)];
        let step = RecordedStep { before: &node.state, change, now };
        if self.extent.every_byte {
            let kind = change.message.split_once(" https").map_or("", |(kind, _)| kind).to_owned();
            if self.kinds_changed.insert(kind) {
                for at in 0..step.written_bytes() {
                    self.found.bytes_changed += 1;
                    step.check_byte(&mut self.contents, at)?;
                }
            }
        }
        if !sample.is_multiple_of(self.world.care.replay) {
            return Ok(());
        }
        self.found.replayed += 1;
        self.found.bytes_changed += 1;
        step.check_repeats(&mut self.contents)?;
        step.check_byte(&mut self.contents, sample / self.world.care.replay)
    }

    fn check_state(&self, state: &State, facts: &Facts, index: &Index, sample: u64) -> Held {
        let (contents, reader, checked) = (&self.contents, &self.reader, &self.checked);
        StateCheck { contents, reader, checked }.check(facts, &self.project_ids)?;
        self.proofs().check_offline(facts)?;
        if sample.is_multiple_of(self.world.care.index) {
            check_rebuilt(index, &View { contents, state })?;
            check_waiting(index, self.world, contents, reader, facts)?;
        }
        Ok(())
    }

    /// An admin can always propose other signers, whatever is pending.
    fn check_rescue(&mut self, node: &Node, facts: &Facts) -> Held {
        if !u64::from(node.id).is_multiple_of(self.world.care.rescue) {
            return Ok(());
        }
        for (project, facts) in (0..).zip(&facts.projects) {
            let active = facts.active[FILE].and_then(|id| self.reader.signers(&self.contents, id));
            let Some(admins) = active.map(|active| active.admins()) else { continue };
            let mut people = (0..).zip(&self.world.people);
            let admin = people.find(|(_, person)| admins.contains(person.public.as_bytes()));
            let Some((by, _)) = admin else { continue };
            let action = Action::Update { project, file: RESCUE, by };
            if let Decision::Refused(refusal) = self.requests.decide(&mut self.contents, &node.state, action)
            {
                return Invariant::NoOneLockedOut
                    .broken(format!("an admin cannot propose signers: {refusal}"));
            }
        }
        Ok(())
    }

    fn counterexample(&self, mut id: u32, last: Option<Action>, broken: Broken) -> Box<Counterexample> {
        let mut script: Vec<String> = last.iter().map(|action| self.world.show(action)).collect();
        while id != 0 {
            let (before, action) = self.came_from[id as usize];
            script.push(self.world.show(&self.world.actions[usize::from(action)]));
            id = before;
        }
        script.reverse();
        Box::new(Counterexample { world: self.world.name, script, broken })
    }
}
