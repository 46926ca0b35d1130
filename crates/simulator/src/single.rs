//! A server on its own: the writer, the nonces, the thread that folds and the log, on a disk that fails and a machine
//! that dies.

mod logging;

use std::sync::Arc;

use countersign_core::{rules::auth::nonce_expiry, rules::auth::request_expiry, values::time::Timestamp};
use countersign_store::{ObjectId, StoreRole};

use crate::expected::{ExpectedHistory, check_index, check_replay};
use crate::machine::{Machine, background::ChangeAnswer};
use crate::script::{Breach, Chance, Guarantee, RunFigures, Script, SimClock};
use crate::{disk_state::Crash, log_book::LogBook, witness, witness::WitnessTalk};
use crate::{wish::ChangeWish, wish::RequestMark};

const STEPS: usize = 32;
const PROJECTS: usize = 3;
/// Seconds by which the clock is set in the middle of a change: more than a follower lets a stated time be off.
const JUMP: i64 = 900;
/// Changes before anything goes wrong, in some runs.
const PAST: usize = 13;

#[derive(Debug)]
pub struct SingleRun<'a> {
    machine: Machine,
    expected: ExpectedHistory,
    witnessing: Option<WitnessTalk>,
    /// The commit up to which the history was replayed.
    replayed: Option<ObjectId>,
    next_request: u64,
    /// Whether the clock was set ahead during a change.
    is_ahead: bool,
    chance: Chance,
    script: &'a mut Script,
    figures: RunFigures,
}

/// Plays one run.
pub fn play(chance: Chance, script: &mut Script) -> Result<RunFigures, Breach> {
    let mut single = SingleRun {
        machine: Machine::new("server", SimClock::default()),
        expected: ExpectedHistory::default(),
        witnessing: None,
        replayed: None,
        next_request: 0,
        is_ahead: false,
        chance,
        script,
        figures: RunFigures::default(),
    };
    single.machine.log_book = Some(LogBook::default());
    if single.chance.percent(50) {
        single.witnessing = Some(WitnessTalk::default());
        single.machine.policy = Some(witness::policy());
    }
    single.start()?;
    if single.chance.percent(25) {
        // So that packs are folded soon.
        for _ in 0..PAST {
            single.change()?;
        }
    }
    for _ in 0..STEPS {
        single.step()?;
    }
    single.end()
}

impl SingleRun<'_> {
    fn step(&mut self) -> Result<(), Breach> {
        if self.machine.must_fold() && self.chance.percent(20) {
            return self.fold();
        }
        match self.chance.below(100) {
            0..46 => self.change(),
            46..53 => self.replay_request(),
            53..66 => {
                self.machine.plan_crash(&mut self.chance, self.script);
                Ok(())
            }
            66..74 => {
                self.machine.plan_failure(&mut self.chance, self.script);
                Ok(())
            }
            74..80 => self.let_time_pass(),
            80..82 => self.lose_agent(),
            82..86 => self.fold(),
            86..91 => self.let_log_run(),
            91..97 => self.ask_witness(),
            97..98 => self.restart(),
            98 => self.collect_garbage(),
            _ => self.look(),
        }
    }

    fn start(&mut self) -> Result<(), Breach> {
        self.script.note("start");
        self.machine.start(|| StoreRole::Single, &mut self.chance, self.script)?;
        self.machine.check_leftovers()?;
        self.observe();
        let entries = self.expected.check(self.machine.store())?;
        self.figures.commits = entries.len();
        check_replay(self.machine.path(), self.replayed)?;
        self.replayed = entries.last().map(|entry| entry.id);
        Ok(())
    }

    /// Users look at what is published, at any time.
    fn observe(&self) {
        let head = self.expected.observer(self.machine.store());
        let log = self.machine.log().map(Arc::downgrade).zip(self.machine.log_book.clone());
        let observer = move || {
            head();
            if let Some((log, book)) = &log
                && let Some(note) = log.upgrade().and_then(|log| log.checkpoint_note())
            {
                book.note_shown(&note);
            }
        };
        self.machine.disk.observe(Some(Box::new(observer)));
    }

    fn change(&mut self) -> Result<(), Breach> {
        let count = 1 + if self.chance.percent(40) { self.chance.below(4) } else { 0 };
        let mut wishes = Vec::new();
        for _ in 0..count {
            let request = self.new_request();
            if self.accept(request)? {
                let (project, whim) = (self.chance.below(PROJECTS), self.chance.below(1_000));
                let jump = self.next_jump();
                wishes.push(ChangeWish { project, whim, request, jump });
            }
            if self.recover()? {
                return Ok(());
            }
        }
        self.script.note(format!("{} changes", wishes.len()));
        let failures = self.machine.disk.failures();
        for (attempt, answer) in self.machine.change(&wishes) {
            match &answer {
                Ok(answer) => self.expected.note_seen(answer.seen),
                Err(_) if self.machine.disk.is_down() || self.machine.disk.failures() > failures => {}
                Err(error) => {
                    return Err(Breach::new(Guarantee::GoesOn, format!("without a fault: {error}")));
                }
            }
            self.script.note(ChangeAnswer::tell(&attempt, &answer));
            self.figures.answered += usize::from(attempt.is_answered);
            self.expected.add(attempt);
        }
        self.recover().map(drop)
    }

    /// Sometimes the clock is set while a change is made: ahead, or right again.
    fn next_jump(&mut self) -> i64 {
        if !self.chance.percent(10) {
            return 0;
        }
        let jump = if self.is_ahead { -JUMP } else { JUMP };
        self.is_ahead = !self.is_ahead;
        self.script.note(format!("the clock will be set by {jump} s"));
        jump
    }

    fn new_request(&mut self) -> RequestMark {
        self.next_request += 1;
        RequestMark { number: self.next_request, signed_at: self.machine.clock.now() }
    }

    /// Whether the server lets a request in, as its authentication does.
    fn accept(&mut self, request: RequestMark) -> Result<bool, Breach> {
        let RequestMark { signed_at, .. } = request;
        let is_fresh = |now: Timestamp| signed_at <= now && now < request_expiry(signed_at);
        let nonces = self.machine.nonces();
        if !is_fresh(self.machine.clock.now()) || nonces.floor().is_some_and(|floor| signed_at < floor) {
            return Ok(false);
        }
        let remembered = self.machine.wait(nonces.remember(request.nonce(), nonce_expiry(signed_at)));
        self.script.note(format!("  request {}: {remembered:?}", request.number));
        if remembered.is_ok() {
            self.expected.accept(request)?;
        }
        Ok(remembered.is_ok())
    }

    /// Sends a request again that was accepted.
    fn replay_request(&mut self) -> Result<(), Breach> {
        let accepted: Vec<RequestMark> = self.expected.accepted().copied().collect();
        if let Some(count) = accepted.len().checked_sub(1) {
            let request = accepted[count - self.chance.below(count.min(8) + 1)];
            self.script.note(format!("request {} again", request.number));
            self.accept(request)?;
        }
        self.recover().map(drop)
    }

    fn let_time_pass(&mut self) -> Result<(), Breach> {
        if self.chance.percent(40) {
            return self.be_ahead();
        }
        let seconds = *self.chance.pick(&[1, 30, 200, 400, 86_400, -1, -30, -500]);
        self.script.note(format!("the clock: {seconds} s"));
        self.machine.clock.pass(seconds);
        Ok(())
    }

    /// The clock is ahead for a while, and is set right. Meanwhile nonces expire that would have to be known again.
    fn be_ahead(&mut self) -> Result<(), Breach> {
        let seconds = *self.chance.pick(&[500, 86_400]);
        self.script.note(format!("the clock is {seconds} s ahead"));
        self.machine.clock.pass(seconds);
        let request = self.new_request();
        self.accept(request)?;
        self.script.note("the clock is right again");
        self.machine.clock.pass(-seconds);
        self.recover()?;
        self.replay_request()
    }

    fn fold(&mut self) -> Result<(), Breach> {
        let steps = self.chance.below(25);
        self.script.note(format!("fold, {steps} steps"));
        self.machine.let_fold(steps);
        self.recover().map(drop)
    }

    fn restart(&mut self) -> Result<(), Breach> {
        self.script.note("stop");
        self.machine.stop(&mut self.chance, self.script);
        if self.chance.percent(50) {
            self.machine.age_folded();
        }
        self.start()
    }

    /// Runs `git gc`, as the operator does.
    fn collect_garbage(&mut self) -> Result<(), Breach> {
        self.script.note("git gc");
        self.machine.collect_garbage();
        self.machine.note_steps(self.script);
        Ok(())
    }

    fn look(&mut self) -> Result<(), Breach> {
        check_index(&self.machine.store().head())
    }

    /// Starts the machine again if it went down, and returns whether it did.
    fn recover(&mut self) -> Result<bool, Breach> {
        self.machine.note_steps(self.script);
        if !self.machine.disk.is_down() {
            self.machine.check_log()?;
            return Ok(false);
        }
        self.figures.crashes += 1;
        let crash = self.machine.power_up(&mut self.chance, self.script);
        self.check_record()?;
        if self.chance.percent(20) {
            self.machine.age_folded();
        }
        // It can go down again while it starts, or soon after. What a kill leaves is seen, and may not be durable.
        if self.chance.percent(if crash == Some(Crash::Kill) { 70 } else { 30 }) {
            self.machine.plan_crash(&mut self.chance, self.script);
        }
        self.start()?;
        if !self.machine.disk.is_down() && self.chance.percent(30) {
            self.collect_garbage()?;
        }
        Ok(true)
    }

    /// The disk works from here on: the store goes on, and everything is there.
    fn end(mut self) -> Result<RunFigures, Breach> {
        self.script.note("in the end");
        self.machine.disk.heal();
        let request = self.new_request();
        let wish = ChangeWish { project: PROJECTS, whim: 1, request, jump: 0 };
        for (attempt, answer) in self.machine.change(&[wish]) {
            if let Err(error) = answer {
                return Err(Breach::new(Guarantee::GoesOn, format!("the disk works, and still: {error}")));
            }
            self.expected.add(attempt);
        }
        self.expected.check(self.machine.store())?;
        self.restart()?;
        check_replay(self.machine.path(), None)?;
        if self.chance.percent(30) {
            self.restore()?;
        }
        self.end_log()?;
        for request in self.expected.accepted().copied().collect::<Vec<_>>() {
            self.accept(request)?;
        }
        self.figures.steps = self.machine.disk.steps();
        Ok(self.figures)
    }
}
