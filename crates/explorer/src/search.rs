//! Searches all states of a world, breadth first. The first way to a state is kept, so a counterexample is a shortest
//! script.

use std::{collections::BTreeSet, collections::HashSet, fmt, sync::Mutex, time::Instant};

use countersign_core::rules::snapshot::Change;

use crate::action::{Action, ListedAction};
use crate::contents::{Contents, State};
use crate::decisions::{Decisions, MemoSet, Outcome};
use crate::invariants::states::{check_update, check_waiting};
use crate::invariants::{Broken, Held, Invariant, proofs::check_shown, replay::RecordedStep};
use crate::judge::{ActionMask, Judge, Ranks};
use crate::logged::{Logged, MapId};
use crate::view::{Facts, Reads, View};
use crate::{requests::RESCUE, symmetry::Symmetry, world::ProjectPlan, world::World};

/// The extent of a search: how far to go.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    pub most_states: usize,
    /// Whether people who can stand for each other do.
    pub symmetric: bool,
    /// Whether every byte of one step of each kind is changed for the replay.
    pub every_byte: bool,
    /// Whether the rules are asked once for all states in which they read the same.
    pub remember: bool,
    /// Whether classes of equal states are counted besides.
    pub count_classes: bool,
}

impl Extent {
    pub const WHOLE: Self = Self {
        most_states: usize::MAX,
        symmetric: true,
        every_byte: false,
        remember: true,
        count_classes: false,
    };
}

#[derive(Debug, Clone)]
pub struct Visited {
    pub states: usize,
    pub steps: u64,
    pub refused: u64,
    /// How many different decisions changed something.
    pub decisions: usize,
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
#[derive(Debug, Clone, Copy)]
struct Node {
    id: u32,
    state: State,
    map: MapId,
}

#[derive(Debug)]
struct Search<'w> {
    world: &'w World,
    extent: Extent,
    contents: Contents,
    decisions: Decisions<'w>,
    judge: Judge<'w>,
    logged: Logged,
    symmetry: Symmetry,
    seen: MemoSet<u128>,
    /// The state before each state, and the action between.
    came_from: Vec<(u32, u16)>,
    classes: Option<(Symmetry, HashSet<u128>)>,
    kinds_changed: BTreeSet<String>,
    found: Visited,
}

pub fn explore(world: &World, extent: Extent) -> Result<Visited, Box<Counterexample>> {
    let began = Instant::now();
    let mut search = Search::new(world, extent);
    let mut border = vec![search.begin()?];
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
        let mut contents = Contents::new(world.role_names());
        let is_symmetric = extent.symmetric && !world.equals.is_empty();
        let rescues = world.projects.len() * world.people.len();
        Self {
            world,
            extent,
            judge: Judge::new(world, &mut contents),
            contents,
            decisions: Decisions::new(world, world.beginning.len() + rescues, extent.remember),
            logged: Logged::default(),
            symmetry: if is_symmetric { Symmetry::of(world) } else { Symmetry::none() },
            seen: MemoSet::default(),
            came_from: Vec::new(),
            classes: extent.count_classes.then(|| (Symmetry::of(world), HashSet::new())),
            kinds_changed: BTreeSet::new(),
            found: Visited {
                states: 0,
                steps: 0,
                refused: 0,
                decisions: 0,
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
        let (states, decisions) = (self.seen.len(), self.decisions.count());
        Visited { states, decisions, classes, seconds: began.elapsed().as_secs_f64(), ..self.found }
    }

    fn count_class(&mut self, state: &State) {
        if let Some((symmetry, classes)) = &mut self.classes {
            classes.insert(symmetry.hash(&self.contents, state));
        }
    }

    /// The state to begin with: an empty repository, or what the world asks for before all else.
    fn begin(&mut self) -> Result<Node, Box<Counterexample>> {
        let mut node = Node { id: 0, state: State::default(), map: 0 };
        self.came_from.push((0, 0));
        for (number, action) in (self.world.actions.len()..).zip(&self.world.beginning) {
            let number = u16::try_from(number).expect("few requests");
            let (mut next, mut lowest) = (Vec::new(), Ranks::default());
            let taken = self.take(&node, ListedAction { number, action: *action }, &mut lowest, &mut next);
            taken.map_err(|broken| self.counterexample(node.id, Some(*action), broken))?;
            let refused = || format!("{}: refused in the beginning", self.world.show(action));
            node = next.pop().unwrap_or_else(|| panic!("{}", refused()));
        }
        self.seen.clear();
        let hash = self.symmetry.hash(&self.contents, &node.state);
        self.seen.insert(hash);
        self.count_class(&node.state);
        Ok(node)
    }

    /// Asks for everything in one state.
    fn expand(&mut self, node: &Node, next: &mut Vec<Node>) -> Result<(), Box<Counterexample>> {
        let (ranks, must_accept) = self.judge.prospects(&self.contents, &node.state);
        let (mut lowest, mut refused) = (ranks, 0);
        for (number, action) in (0..).zip(&self.world.actions) {
            let taken = self.take(node, ListedAction { number, action: *action }, &mut lowest, next);
            let is_refused = taken.map_err(|broken| self.counterexample(node.id, Some(*action), broken))?;
            refused |= ActionMask::from(is_refused) << number;
        }
        self.found.refused += u64::from(refused.count_ones());
        if refused & must_accept != 0 {
            let action = self.world.actions[(refused & must_accept).trailing_zeros() as usize];
            let refusal = self.decisions.refusal(&mut self.contents, &node.state, action);
            let what = format!("someone who may is refused: {refusal}");
            let broken = Broken { invariant: Invariant::NoOneLockedOut, what };
            return Err(self.counterexample(node.id, Some(action), broken));
        }
        let held = self.judge.check_ranks(&ranks, &lowest).and_then(|()| self.check_rescue(node));
        held.map_err(|broken| self.counterexample(node.id, None, broken))
    }

    /// Asks for one thing, and checks what came of it. Returns whether it was refused.
    fn take(
        &mut self,
        node: &Node,
        listed: ListedAction,
        lowest: &mut Ranks,
        next: &mut Vec<Node>,
    ) -> Result<bool, Broken> {
        let (before, at, action) = (&node.state, usize::from(listed.number), listed.action);
        let (after, decision, is_first) = match self.decisions.decide(&mut self.contents, before, at, action)
        {
            Ok(Outcome::Refused) => return Ok(true),
            Ok(Outcome::Nothing) => return Ok(false),
            Ok(Outcome::Clock(clock)) => (State { clock, ..*before }, None, false),
            Ok(Outcome::Decided { decision, is_first }) => {
                (self.decisions.get(decision).after(before), Some(decision), is_first)
            }
            Err(unsound) => return Invariant::StatesAreSound.broken(unsound.to_string()),
        };
        self.found.steps += 1;
        self.judge.check_step(&self.contents, listed, before, &after)?;
        // The step and the change are checked with all that the step wrote. The search goes on with what rules depend
        // on.
        let whole = after;
        let after = self.contents.forget_said(&whole);
        let (ranks, _) = self.judge.prospects(&self.contents, &after);
        lowest.iter_mut().zip(ranks).for_each(|(lowest, rank)| *lowest = (*lowest).min(rank));
        let hash = self.symmetry.hash(&self.contents, &after);
        let is_new = self.seen.insert(hash);
        if is_new {
            self.judge.check_state(&self.contents, &after)?;
        }
        let map = self.check_log(node.map, decision, &after, is_new)?;
        let sample = (hash >> 64) as u64 ^ u64::from(node.id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if let Some(decision) = decision {
            self.check_costly(node, decision, &whole, Sample { sample, is_first })?;
        }
        if is_new {
            let id = u32::try_from(self.came_from.len()).expect("fewer states than there are numbers");
            self.check_staples(map, decision, &after, sample)?;
            self.came_from.push((node.id, listed.number));
            self.count_class(&after);
            next.push(Node { id, state: after, map });
        }
        Ok(false)
    }

    /// Brings the status map of the log up to date.
    fn check_log(
        &mut self,
        before: MapId,
        decision: Option<u32>,
        after: &State,
        is_new: bool,
    ) -> Result<MapId, Broken> {
        let map = match decision {
            Some(number) => self.logged.apply(&self.contents, before, self.decisions.get(number), after)?,
            None => before,
        };
        if is_new || map != before {
            self.logged.check(self.judge.proofs(&self.contents), map, after)?;
        }
        Ok(map)
    }

    fn check_staples(&mut self, map: MapId, decision: Option<u32>, after: &State, sample: u64) -> Held {
        let Some(decision) = decision.filter(|_| sample.is_multiple_of(self.world.care.staple)) else {
            return Ok(());
        };
        self.found.staples += 1;
        let (change, now) =
            (&self.decisions.get(decision).change, self.world.clocks[usize::from(after.clock)]);
        let facts = Facts::of(after, &self.contents);
        self.judge.proofs(&self.contents).check_staples(self.logged.get(map), &facts, change, now)
    }

    /// Each different change once, and a sample of the steps that make it.
    fn check_costly(&mut self, node: &Node, decision: u32, after: &State, chosen: Sample) -> Held {
        let change = &self.decisions.get(decision).change;
        let contents = &mut self.contents;
        if chosen.takes(self.world.care.index) {
            let (contents, reads) = (&*contents, &Reads::default());
            let view = |state| View { contents, state, reads };
            let index = check_update(&view(&node.state), &view(after), change)?;
            let facts = Facts::of(after, contents);
            check_waiting(&index, self.world, contents, &self.judge.reader, &facts)?;
        }
        // Every signature is verified for it.
        if chosen.sample.is_multiple_of(self.world.care.staple) {
            check_shown(&View { contents, state: after, reads: &Reads::default() })?;
        }
        let now = self.world.clocks[usize::from(node.state.clock)];
        let step = RecordedStep { before: &node.state, change, now };
        if self.extent.every_byte && chosen.is_first && self.kinds_changed.insert(kind_of(change)) {
            for at in 0..step.written_bytes() {
                self.found.bytes_changed += 1;
                step.check_byte(contents, at)?;
            }
        }
        if chosen.takes(self.world.care.replay) {
            self.found.replayed += 1;
            self.found.bytes_changed += 1;
            step.check_repeats(contents)?;
            step.check_byte(contents, chosen.sample / self.world.care.replay)?;
        }
        Ok(())
    }

    /// An admin can always propose other signers, whatever is pending, but for what is kept for the masters.
    fn check_rescue(&mut self, node: &Node) -> Held {
        if !self.world.care.rescue {
            return Ok(());
        }
        for project in 0..self.world.projects.len() {
            let Some(by) = self.judge.admin(&self.contents, &node.state, project) else { continue };
            if self.judge.is_kept_for_masters(&self.contents, &node.state, project) {
                continue;
            }
            let listed = self.world.actions.len() + self.world.beginning.len();
            let number = listed + project * self.world.people.len() + usize::from(by);
            let project = u8::try_from(project).expect("few projects");
            let action = Action::Update { project, file: RESCUE, by };
            let outcome = self.decisions.decide(&mut self.contents, &node.state, number, action);
            if matches!(outcome, Ok(Outcome::Refused)) {
                let refusal = self.decisions.refusal(&mut self.contents, &node.state, action);
                let what = format!("an admin cannot propose signers: {refusal}");
                return Invariant::NoOneLockedOut.broken(what);
            }
        }
        Ok(())
    }

    fn counterexample(&self, mut id: u32, last: Option<Action>, broken: Broken) -> Box<Counterexample> {
        let mut script: Vec<String> = last.iter().map(|action| self.world.show(action)).collect();
        while id != 0 {
            let (before, action) = self.came_from[id as usize];
            script.push(self.world.show(&self.world.action(action)));
            id = before;
        }
        script.reverse();
        Box::new(Counterexample { world: self.world.name, script, broken })
    }
}

/// A sample: by it steps are chosen for costly checks.
#[derive(Debug, Clone, Copy)]
struct Sample {
    sample: u64,
    is_first: bool,
}

impl Sample {
    fn takes(&self, one_of: u64) -> bool {
        self.is_first || self.sample.is_multiple_of(one_of)
    }
}

/// The beginning of its title, and how many files it writes.
fn kind_of(change: &Change) -> String {
    let title = change.message.split_once(" https").map_or("", |(kind, _)| kind);
    format!("{title} {}", change.files.values().flatten().count())
}

// Worlds side by side in two threads, and one row of the table of bounds for each.

const THREADS: usize = 2;
/// Worlds of which so many states or more are asked for have every byte of a step changed, where their care says so.
const EVERY_BYTE: usize = 100_000;

/// Visits each world up to so many states, and tells of each as it is done. One counterexample is enough.
pub fn visit(
    worlds: &[World],
    most_states: impl Fn(&World) -> usize + Sync,
    tell: impl Fn(&World, &Visited) + Sync,
) -> Vec<Result<Visited, Box<Counterexample>>> {
    // The largest are last in the list, and come first, so that no thread waits long for the other.
    let waiting: Mutex<Vec<&World>> = Mutex::new(worlds.iter().collect());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(world) = take(&waiting) {
                    let most_states = most_states(world);
                    let every_byte = world.care.every_byte && most_states >= EVERY_BYTE;
                    let result = explore(world, Extent { most_states, every_byte, ..Extent::WHOLE });
                    match &result {
                        Ok(visited) => tell(world, visited),
                        Err(_) => waiting.lock().expect("no thread has panicked").clear(),
                    }
                    results.lock().expect("no thread has panicked").push(result);
                }
            });
        }
    });
    results.into_inner().expect("no thread has panicked")
}

fn take<'w>(waiting: &Mutex<Vec<&'w World>>) -> Option<&'w World> {
    waiting.lock().expect("no thread has panicked").pop()
}

/// The first two lines of the table.
pub const HEAD: &str = "\
| world | thresholds | keys | projects | files | releases | clocks | requests | states | whole | steps | refused | decisions | depth | replayed | bytes | staples | seconds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

pub fn row(world: &World, visited: &Visited) -> String {
    let sum = |count: fn(&ProjectPlan) -> usize| -> usize { world.projects.iter().map(count).sum() };
    let people: BTreeSet<u8> = world.actions.iter().filter_map(|it| it.person()).collect();
    let whole = if visited.is_whole { "yes" } else { "no" };
    let Visited {
        states, steps, refused, decisions, depth, replayed, bytes_changed, staples, seconds, ..
    } = visited;
    let cells = [
        world.name.to_owned(),
        world.about.to_owned(),
        people.len().to_string(),
        world.projects.len().to_string(),
        sum(|plan| plan.files.len()).to_string(),
        sum(|plan| plan.releases.len() * plan.contents.len()).to_string(),
        world.clocks.len().to_string(),
        world.actions.len().to_string(),
        states.to_string(),
        whole.to_owned(),
        steps.to_string(),
        refused.to_string(),
        decisions.to_string(),
        depth.to_string(),
        replayed.to_string(),
        bytes_changed.to_string(),
        staples.to_string(),
        format!("{seconds:.1}"),
    ];
    format!("| {} |", cells.join(" | "))
}
