//! What a run did, in the order in which it did it, and what was wrong in the end.

use std::fmt;

use crate::figures::RunFigures;

#[derive(Debug, Default)]
pub struct Script(Vec<String>);

impl Script {
    pub fn note(&mut self, line: impl Into<String>) {
        self.0.push(line.into());
    }

    /// The steps of a disk that came with what was noted last.
    pub fn note_steps(&mut self, name: &str, steps: Vec<String>) {
        self.0.extend(steps.into_iter().map(|step| format!("    {name}{step}")));
    }
}

/// Something that must hold does not.
#[derive(Debug)]
pub struct Breach {
    pub invariant: Guarantee,
    pub what: String,
}

/// The guarantees that must hold (docs/assurance.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guarantee {
    /// What was answered, or seen by a reader, is there after a crash.
    AnsweredStays,
    /// Every commit is one that was asked for, with all of its files, once.
    NothingHalf,
    /// The rules give every commit, and every object can be read.
    ReplayAccepts,
    /// The index is the one that the files give.
    IndexEqualsRebuilt,
    /// No request is accepted twice.
    NonceOnce,
    /// A store opens after every crash, and goes on when its disk does.
    GoesOn,
    /// Nodes have one order, and each has a beginning of it.
    OneOrder,
    /// Times in the order of nodes never run backwards, and are those of the order's own clock.
    OneClock,
    /// A follower has a beginning of what its origin has.
    PrefixOfOrigin,
    /// No two signed checkpoints contradict each other, and none is older than one that was shown before.
    OneLog,
    /// What was signed can be proved: the commits are there, with this root.
    SignedIsProvable,
    /// A witness never cosigns two checkpoints that contradict each other, nor goes back.
    WitnessNeverGoesBack,
}

impl Breach {
    pub fn new(invariant: Guarantee, what: impl Into<String>) -> Self {
        Self { invariant, what: what.into() }
    }
}

/// A run, with all that is needed to repeat it.
#[derive(Debug)]
pub struct PlayedRun {
    pub seed: u64,
    pub result: Result<RunFigures, Breach>,
    pub script: Script,
}

impl fmt::Display for PlayedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, result, script } = self;
        for line in &script.0 {
            writeln!(f, "{line}")?;
        }
        if let Err(Breach { invariant, what }) = result {
            writeln!(f, "{invariant:?} does not hold with the seed {seed}: {what}")?;
            writeln!(f, "Again: cargo run -p countersign-simulator -- --seed {seed}")?;
        }
        Ok(())
    }
}
