//! A run: its chance, its clock, what it did in which order, what was wrong in the end, and its figures.

use std::sync::{Arc, atomic::AtomicI64, atomic::AtomicU64, atomic::Ordering};
use std::{fmt, time::Duration, time::Instant};

use countersign_core::values::time::Timestamp;
use countersign_store::machine::clock::Clock;

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

// All that a run leaves to chance comes from one seed.

/// A source of chance: SplitMix64, small, and the same everywhere.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        // Seeds that follow each other should not give runs that resemble each other.
        let mut chance = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
        chance.draw();
        chance
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of `0..bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        usize::try_from(self.draw() % bound).expect("below a usize")
    }

    /// Happens in so many of a hundred cases.
    pub fn percent(&mut self, of_hundred: usize) -> bool {
        self.below(100) < of_hundred
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A source for a part that takes chances of its own.
    pub fn fork(&mut self) -> Self {
        Self::new(self.draw())
    }
}

// A clock that a run sets.

#[derive(Debug, Clone)]
pub struct SimClock {
    seconds: Arc<AtomicI64>,
    passed: Arc<AtomicU64>,
}

impl Default for SimClock {
    fn default() -> Self {
        Self { seconds: Arc::new(AtomicI64::new(1_770_000_000)), passed: Arc::default() }
    }
}

impl SimClock {
    pub fn now(&self) -> Timestamp {
        Timestamp::from_unix_seconds(self.seconds.load(Ordering::Relaxed)).expect("a year of this century")
    }

    /// Shows another time, forwards or back. No time passes.
    pub fn set_by(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Forwards, or back.
    pub fn pass(&self, seconds: i64) {
        self.set_by(seconds);
        self.passed.fetch_add(u64::try_from(seconds).unwrap_or_default(), Ordering::Relaxed);
    }

    /// The clock that a process reads. Time that passes is measured as well, and never goes back.
    pub fn clock(&self) -> Clock {
        let (this, steady) = (self.clone(), Arc::clone(&self.passed));
        let start = Instant::now();
        Clock::new(move || this.now())
            .with_steady(move || start + Duration::from_secs(steady.load(Ordering::Relaxed)))
    }
}

// The figures of runs, for the table.

#[derive(Debug, Clone, Copy, Default)]
pub struct RunFigures {
    /// Steps of disks.
    pub steps: u64,
    pub crashes: usize,
    pub commits: usize,
    pub answered: usize,
}

impl RunFigures {
    pub fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.crashes += other.crashes;
        self.commits += other.commits;
        self.answered += other.answered;
    }
}
