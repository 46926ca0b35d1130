//! Remembers what the rules decided, by what they read. A decision is a pure function of the request, the clock and the
//! parts of the repository that it looked at. So each different one is made once, by the real rules, and stands for all
//! states that agree in these parts.

use std::{collections::HashMap, collections::HashSet, fmt, hash::BuildHasherDefault, hash::Hasher};

use countersign_core::rules::snapshot::{Change, ReadError};

use crate::contents::{ContentId, Contents, PartId, PathId, State};
use crate::{action::Action, requests::Decision, requests::Requests, view::Reads, world::World};

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Nothing,
    Refused,
    Clock(u8),
    /// The number of the decision, and whether it makes a change that no other made before.
    Decided {
        decision: u32,
        is_first: bool,
    },
}

/// A change that was decided.
#[derive(Debug)]
pub struct Decided {
    pub number: u32,
    pub change: Change,
    /// What the parts that it wrote hold after it.
    parts: Box<[(u8, PartId)]>,
}

impl Decided {
    pub fn after(&self, before: &State) -> State {
        let mut after = *before;
        self.parts.iter().for_each(|(at, part)| after.parts[usize::from(*at)] = *part);
        after
    }
}

/// What cannot be: a change that no store can make, or a repository that the rules call broken.
#[derive(Debug)]
pub enum Unsound {
    Change(String),
    Stored(ReadError),
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(what) => f.write_str(what),
            Self::Stored(error) => error.fmt(f),
        }
    }
}

type Known = (Reads, Memo<State, Outcome>);

#[derive(Debug)]
pub struct Decisions<'w> {
    requests: Requests<'w>,
    remember: bool,
    /// What was decided, by the number of the action and by what was read.
    known: Vec<Vec<Known>>,
    decided: Vec<Decided>,
    changes: MemoSet<Vec<(PathId, Option<ContentId>)>>,
}

impl<'w> Decisions<'w> {
    /// Decisions for the actions of the world and `more`.
    pub fn new(world: &'w World, more: usize, remember: bool) -> Self {
        let known = (0..world.actions.len() + more).map(|_| Vec::new()).collect();
        let (requests, decided) = (Requests::new(world), Vec::new());
        Self { requests, remember, known, decided, changes: MemoSet::default() }
    }

    pub fn get(&self, decision: u32) -> &Decided {
        &self.decided[decision as usize]
    }

    pub fn count(&self) -> usize {
        self.decided.len()
    }

    /// Decides an action. `number` is the action's own.
    pub fn decide(
        &mut self,
        contents: &mut Contents,
        state: &State,
        number: usize,
        action: Action,
    ) -> Result<Outcome, Unsound> {
        for (reads, known) in self.known[number].iter().filter(|_| self.remember) {
            if let Some(outcome) = known.get(&reads.seen(contents, state)) {
                return Ok(*outcome);
            }
        }
        let reads = Reads::default();
        let outcome = match self.requests.decide(contents, state, action, &reads) {
            Decision::Changed(change) => self.keep(contents, state, change, &reads)?,
            Decision::Clock(clock) => Outcome::Clock(clock),
            Decision::Nothing => Outcome::Nothing,
            Decision::Refused(_) => Outcome::Refused,
            Decision::Corrupt(error) => return Err(Unsound::Stored(error)),
        };
        let remembered = match outcome {
            Outcome::Decided { decision, .. } => Outcome::Decided { decision, is_first: false },
            Outcome::Nothing | Outcome::Refused | Outcome::Clock(_) => outcome,
        };
        let seen = reads.seen(contents, state);
        let known = &mut self.known[number];
        match known.iter_mut().find(|(others, _)| *others == reads) {
            Some((_, known)) => drop(known.insert(seen, remembered)),
            None => known.push((reads, Memo::from_iter([(seen, remembered)]))),
        }
        Ok(outcome)
    }

    fn keep(
        &mut self,
        contents: &mut Contents,
        before: &State,
        change: Change,
        reads: &Reads,
    ) -> Result<Outcome, Unsound> {
        // What a part holds after the change depends on what it held before.
        change.files.keys().for_each(|path| reads.note_content(contents.part_of(path)));
        let after = contents.apply(before, &change).map_err(Unsound::Change)?;
        let mut written = Vec::new();
        for (path, bytes) in &change.files {
            written.push((contents.intern_path(path), bytes.as_ref().map(|bytes| contents.intern(bytes))));
        }
        let is_first = self.changes.insert(written);
        let parts = (0..).zip(before.parts.iter().zip(after.parts));
        let parts = parts.filter(|(_, (before, after))| *before != after).map(|(at, (_, after))| (at, after));
        let number = u32::try_from(self.decided.len()).expect("fewer decisions than states");
        self.decided.push(Decided { number, parts: parts.collect(), change });
        Ok(Outcome::Decided { decision: number, is_first })
    }

    /// Why a request is refused.
    pub fn refusal(&mut self, contents: &mut Contents, state: &State, action: Action) -> String {
        match self.requests.decide(contents, state, action, &Reads::default()) {
            Decision::Refused(refusal) => refusal,
            Decision::Changed(_) | Decision::Clock(_) | Decision::Nothing | Decision::Corrupt(_) => {
                "it is refused in one state and not in another that reads the same".to_owned()
            }
        }
    }
}

// Maps that remember answers. Their keys are small numbers of our own, so a hash need not withstand anyone.

pub type Memo<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;
pub type MemoSet<K> = HashSet<K, BuildHasherDefault<Mixer>>;

/// Multiplies and rotates: a tenth of the time that the hash of the standard library takes for such keys.
#[derive(Debug, Default)]
pub struct Mixer(u64);

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            self.write_u64(u64::from_le_bytes(whole));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(ODD);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}
