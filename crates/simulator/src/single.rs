//! A server on its own: the writer, the nonces, the thread that folds and the log, on a disk that fails and a machine that
//! dies.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use countersign_core::{
    log::tree::{TreeHead, verify_consistency},
    rules::auth::{nonce_expiry, request_expiry},
    values::time::Timestamp,
};
use countersign_log::LogReplay;
use countersign_store::{ObjectId, StoreRole};

use crate::{
    chance::Chance,
    clock::SimClock,
    expected::{Expected, check_index, check_replay},
    figures::Figures,
    log_book::{LogBook, log_key},
    machine::{Answer, Machine},
    script::{Broken, Invariant, Script},
    wish::{RequestMark, Wish},
};

const STEPS: usize = 40;
const PROJECTS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Single<'a> {
    machine: Machine,
    expected: Expected,
    /// Up to here the history was replayed.
    replayed: Option<ObjectId>,
    next_request: u64,
    chance: Chance,
    script: &'a mut Script,
    figures: Figures,
}

/// Plays one run.
pub fn play(chance: Chance, script: &mut Script) -> Result<Figures, Broken> {
    let mut single = Single {
        machine: Machine::new("server", SimClock::default()),
        expected: Expected::default(),
        replayed: None,
        next_request: 0,
        chance,
        script,
        figures: Figures::default(),
    };
    single.machine.log_book = Some(LogBook::default());
    single.start()?;
    for _ in 0..STEPS {
        single.step()?;
    }
    single.end()
}

impl Single<'_> {
    fn step(&mut self) -> Result<(), Broken> {
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
            86..97 => self.let_log_run(),
            97..99 => self.restart(),
            _ => self.look(),
        }
    }

    fn start(&mut self) -> Result<(), Broken> {
        self.script.note("start");
        self.machine.start(|| StoreRole::Single, &mut self.chance, self.script)?;
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

    fn change(&mut self) -> Result<(), Broken> {
        let count = 1 + if self.chance.percent(40) { self.chance.below(4) } else { 0 };
        let mut wishes = Vec::new();
        for _ in 0..count {
            let request = self.new_request();
            if self.accept(request)? {
                let (project, whim) = (self.chance.below(PROJECTS), self.chance.below(1_000));
                wishes.push(Wish { project, whim, request });
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
                    return Err(Broken::new(Invariant::GoesOn, format!("without a fault: {error}")));
                }
            }
            self.script.note(Answer::tell(&attempt, &answer));
            self.figures.answered += usize::from(attempt.is_answered);
            self.expected.add(attempt);
        }
        self.recover().map(drop)
    }

    fn new_request(&mut self) -> RequestMark {
        self.next_request += 1;
        RequestMark { number: self.next_request, signed_at: self.machine.clock.now() }
    }

    /// Whether the server lets a request in, as its authentication does.
    fn accept(&mut self, request: RequestMark) -> Result<bool, Broken> {
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

    /// Someone sends a request again that was accepted.
    fn replay_request(&mut self) -> Result<(), Broken> {
        let accepted: Vec<RequestMark> = self.expected.accepted().copied().collect();
        if let Some(count) = accepted.len().checked_sub(1) {
            let request = accepted[count - self.chance.below(count.min(8) + 1)];
            self.script.note(format!("request {} again", request.number));
            self.accept(request)?;
        }
        self.recover().map(drop)
    }

    fn let_time_pass(&mut self) -> Result<(), Broken> {
        let seconds = *self.chance.pick(&[1, 30, 200, 400, 86_400, -1, -30, -500]);
        self.script.note(format!("the clock: {seconds} s"));
        self.machine.clock.pass(seconds);
        Ok(())
    }

    fn fold(&mut self) -> Result<(), Broken> {
        let steps = self.chance.below(25);
        self.script.note(format!("fold, {steps} steps"));
        self.machine.let_fold(steps);
        self.recover().map(drop)
    }

    fn let_log_run(&mut self) -> Result<(), Broken> {
        let steps = self.chance.below(20);
        self.script.note(format!("the log, {steps} steps"));
        self.machine.let_log_run(steps);
        self.recover().map(drop)
    }

    fn lose_agent(&mut self) -> Result<(), Broken> {
        self.script.note("the log's key is gone for a moment");
        self.machine.log_book.iter().for_each(LogBook::lose_agent);
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Broken> {
        self.script.note("stop");
        self.machine.stop(&mut self.chance, self.script);
        if self.chance.percent(50) {
            self.machine.age_folded();
        }
        self.start()
    }

    fn look(&mut self) -> Result<(), Broken> {
        check_index(&self.machine.store().head())
    }

    /// If the machine went down, it starts again. Whether it was so.
    fn recover(&mut self) -> Result<bool, Broken> {
        self.machine.note_steps(self.script);
        if !self.machine.disk.is_down() {
            self.machine.check_log()?;
            return Ok(false);
        }
        self.figures.crashes += 1;
        self.machine.power_up(&mut self.chance, self.script);
        self.check_record()?;
        if self.chance.percent(20) {
            self.machine.age_folded();
        }
        // It can go down again while it starts.
        if self.chance.percent(30) {
            self.machine.plan_crash(&mut self.chance, self.script);
        }
        self.start().map(|()| true)
    }

    fn check_record(&self) -> Result<(), Broken> {
        let dir = self.machine.path().join("log");
        self.machine.log_book.as_ref().map_or(Ok(()), |book| book.check_record(&dir))
    }

    /// The disk works from here on: the store goes on, and everything is there.
    fn end(mut self) -> Result<Figures, Broken> {
        self.script.note("in the end");
        self.machine.disk.heal();
        let request = self.new_request();
        let wish = Wish { project: PROJECTS, whim: 1, request };
        for (attempt, answer) in self.machine.change(&[wish]) {
            if let Err(error) = answer {
                return Err(Broken::new(Invariant::GoesOn, format!("the disk works, and still: {error}")));
            }
            self.expected.add(attempt);
        }
        self.expected.check(self.machine.store())?;
        self.restart()?;
        self.machine.check_leftovers()?;
        check_replay(self.machine.path(), None)?;
        self.end_log()?;
        for request in self.expected.accepted().copied().collect::<Vec<_>>() {
            self.accept(request)?;
        }
        self.figures.steps = self.machine.disk.steps();
        Ok(self.figures)
    }

    /// The log covers all commits, and what was ever signed is a beginning of what the repository gives.
    fn end_log(&mut self) -> Result<(), Broken> {
        let begin = Instant::now();
        while !self.machine.is_log_done() {
            self.machine.let_log_run(1_000);
            self.machine.check_log()?;
            if begin.elapsed() > PATIENCE {
                let trouble = self.machine.log().and_then(|log| log.trouble());
                return Err(Broken::new(Invariant::GoesOn, format!("the log does not go on: {trouble:?}")));
            }
        }
        self.machine.check_log()?;
        let (Some(log), Some(book)) = (self.machine.log(), &self.machine.log_book) else { return Ok(()) };
        let newest = log.newest_checkpoint().map(|newest| newest.checkpoint().head());
        let Some(newest) = newest else { return Ok(()) };
        let unprovable = |size| {
            let what = format!("the checkpoint of {size} commits, which was signed, cannot be proved");
            Broken::new(Invariant::SignedIsProvable, what)
        };
        for (size, root) in book.signed() {
            let proof = log.prove_consistency(size, newest.size).ok_or_else(|| unprovable(size))?;
            let signed = TreeHead { size, root };
            verify_consistency(&signed, &newest, &proof).map_err(|_| unprovable(size))?;
        }
        // Once more, from the repository alone.
        log.stop();
        self.machine.disk.set_gates_open(true);
        let dir = self.machine.path().join("derived");
        let derived = LogReplay::start(self.machine.store(), &dir, log_key());
        let derived = derived.map_err(|error| Broken::new(Invariant::GoesOn, error.to_string()))?;
        let mut sizes = derived.sizes();
        let reached = self.machine.wait(sizes.wait_for(|size| *size >= newest.size)).is_ok();
        if !reached || derived.root_at(newest.size) != Some(newest.root) {
            return Err(unprovable(newest.size));
        }
        Ok(())
    }
}
