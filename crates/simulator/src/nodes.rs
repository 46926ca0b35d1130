//! Nodes that share an order: each on its own machine, behind a network that loses, repeats and delays messages.

use std::collections::BTreeSet;

use countersign_store::{ObjectId, StoreError, StoreRole};

use crate::expected::{ExpectedHistory, check_head, check_index, check_replay};
use crate::machine::{Machine, background::ChangeAnswer};
use crate::order::{OrderCare, SimOrder};
use crate::script::{Breach, Chance, Guarantee, RunFigures, Script, SimClock};
use crate::wish::{ChangeWish, RequestMark};

const STEPS: usize = 32;
const PROJECTS: usize = 2;
const NAMES: [&str; 3] = ["one", "two", "three"];
/// Seconds by which a clock is set, also in the middle of a change. The order allows some of them.
const JUMPS: [i64; 6] = [3, -3, 60, -60, 900, -900];
/// How often a node asks for what is new until it has it.
const TRIES: usize = 100;

#[derive(Debug)]
struct NodesRun<'a> {
    nodes: Vec<Machine>,
    order: SimOrder,
    expected: ExpectedHistory,
    next_request: u64,
    chance: Chance,
    script: &'a mut Script,
    figures: RunFigures,
}

/// Plays one run.
pub fn play(chance: Chance, script: &mut Script) -> Result<RunFigures, Breach> {
    play_on(chance, script, OrderCare::Compares)
}

/// Plays one run with an order that looks at times, or does not.
pub fn play_on(mut chance: Chance, script: &mut Script, care: OrderCare) -> Result<RunFigures, Breach> {
    let count = 2 + chance.below(2);
    let mut nodes = NodesRun {
        nodes: NAMES[..count].iter().map(|name| Machine::new(name, SimClock::default())).collect(),
        order: SimOrder::new(chance.fork(), care),
        expected: ExpectedHistory::default(),
        next_request: 0,
        chance,
        script,
        figures: RunFigures::default(),
    };
    for node in 0..count {
        nodes.start(node)?;
    }
    for _ in 0..STEPS {
        nodes.step()?;
    }
    nodes.end()
}

impl NodesRun<'_> {
    fn step(&mut self) -> Result<(), Breach> {
        let node = self.chance.below(self.nodes.len());
        match self.chance.below(100) {
            0..50 => self.change(node),
            50..62 => self.catch_up(node),
            62..70 => {
                self.nodes[node].plan_crash(&mut self.chance, self.script);
                Ok(())
            }
            70..74 => {
                self.nodes[node].plan_failure(&mut self.chance, self.script);
                Ok(())
            }
            74..76 => self.fail_behind(node),
            76..82 => {
                self.script.note("what is late arrives");
                self.order.deliver();
                self.check()
            }
            82..88 => {
                let loss = *self.chance.pick(&[0, 10, 30]);
                self.script.note(format!("{loss} of 100 messages are lost"));
                self.order.set_loss(loss);
                Ok(())
            }
            88..92 => {
                if self.chance.percent(50) {
                    return self.pass_time();
                }
                let seconds = *self.chance.pick(&JUMPS);
                self.script.note(format!("{}: the clock is set by {seconds} s", NAMES[node]));
                self.nodes[node].clock.set_by(seconds);
                Ok(())
            }
            92..95 => self.lose_batches(node),
            _ => self.restart(node),
        }
    }

    fn start(&mut self, node: usize) -> Result<(), Breach> {
        self.script.note(format!("{}: start", NAMES[node]));
        let order = self.order.clone();
        let role = || StoreRole::Node(Box::new(order.sequencer()));
        self.nodes[node].start(role, &mut self.chance, self.script)?;
        let observer = self.expected.observer(self.nodes[node].store());
        self.nodes[node].disk.observe(Some(Box::new(observer)));
        self.check()
    }

    fn restart(&mut self, node: usize) -> Result<(), Breach> {
        self.script.note(format!("{}: stop", NAMES[node]));
        self.nodes[node].stop(&mut self.chance, self.script);
        self.start(node)
    }

    /// Lets time pass for the database and for all nodes.
    fn pass_time(&mut self) -> Result<(), Breach> {
        let seconds = *self.chance.pick(&[5, 90]);
        self.script.note(format!("{seconds} s pass"));
        self.order.pass_time(seconds);
        for node in 0..self.nodes.len() {
            self.nodes[node].clock.pass(seconds);
            // What was held for long comes to disk.
            self.nodes[node].await_writer();
            self.recover(node)?;
        }
        Ok(())
    }

    fn set_clock_right(&self, node: usize) {
        self.nodes[node].clock.set_by(-self.lead(node));
    }

    /// The seconds by which a node's clock is ahead of the database's.
    fn lead(&self, node: usize) -> i64 {
        self.nodes[node].clock.now().unix_seconds() - self.order.now().unix_seconds()
    }

    fn change(&mut self, node: usize) -> Result<(), Breach> {
        let count = 1 + if self.chance.percent(40) { self.chance.below(3) } else { 0 };
        let mut wishes = Vec::new();
        for _ in 0..count {
            self.next_request += 1;
            let signed_at = self.order.now();
            let request = RequestMark { number: self.next_request, signed_at };
            wishes.push(ChangeWish {
                project: self.chance.below(PROJECTS),
                whim: self.chance.below(1_000),
                request,
                jump: if self.chance.percent(10) { *self.chance.pick(&JUMPS) } else { 0 },
            });
        }
        let leads = [self.lead(node), wishes.iter().map(|wish| wish.jump.abs()).sum()];
        let may_be_wrong = leads.iter().map(|lead| lead.abs()).sum::<i64>() > 5;
        self.script.note(format!("{}: {count} changes", NAMES[node]));
        let failures = self.nodes[node].disk.failures();
        let answers = self.nodes[node].change(&wishes);
        let may_fail = self.nodes[node].disk.failures() > failures || self.nodes[node].disk.is_down();
        for (attempt, answer) in answers {
            self.script.note(ChangeAnswer::tell(&attempt, &answer));
            match &answer {
                Ok(answer) => self.expected.note_seen(answer.seen),
                Err(StoreError::Unconfirmed(_) | StoreError::Unordered(_)) => {}
                Err(StoreError::WrongClock { .. } | StoreError::ClockBehind { .. }) if may_be_wrong => {}
                Err(_) if may_fail => {}
                Err(error) => {
                    return Err(Breach::new(Guarantee::GoesOn, format!("without a fault: {error}")));
                }
            }
            self.figures.answered += usize::from(attempt.is_answered);
            self.expected.add(attempt);
        }
        if self.lead(node).abs() > 5 && self.chance.percent(50) {
            self.script.note(format!("{}: the clock is set right", NAMES[node]));
            self.set_clock_right(node);
        }
        self.recover(node)
    }

    fn catch_up(&mut self, node: usize) -> Result<(), Breach> {
        let failures = self.nodes[node].disk.failures();
        let caught_up = self.nodes[node].wait(self.nodes[node].store().catch_up());
        self.script.note(format!("{}: asks for what is new: {}", NAMES[node], caught_up.is_ok()));
        let may_fail = self.nodes[node].disk.failures() > failures || self.nodes[node].disk.is_down();
        match caught_up {
            Ok(()) | Err(StoreError::Unordered(_) | StoreError::Unconfirmed(_)) => {}
            Err(StoreError::WrongClock { .. }) if self.lead(node).abs() > 5 => {}
            Err(_) if may_fail => {}
            Err(error) => return Err(Breach::new(Guarantee::OneOrder, error.to_string())),
        }
        self.nodes[node].await_writer();
        self.nodes[node].await_folder();
        self.recover(node)
    }

    /// The disk fails at the end of a write while the node repeats what others did.
    fn fail_behind(&mut self, node: usize) -> Result<(), Breach> {
        self.nodes[node].clock.pass(2);
        self.nodes[node].await_writer();
        self.recover(node)?;
        self.nodes[node].plan_late_failure(&mut self.chance, self.script);
        self.catch_up(node)
    }

    /// The database fails over to a standby that lags behind. A node that has everything gives it back.
    fn lose_batches(&mut self, node: usize) -> Result<(), Breach> {
        self.settle(node)?;
        let before: Vec<ObjectId> = self.order.read()?.iter().map(|entry| entry.id).collect();
        let count = 1 + self.chance.below(4);
        self.script.note(format!("the order loses {count} batches"));
        let forgotten = self.order.forgotten();
        self.order.lose(count);
        let is_lost = self.order.read()?.len() < before.len();
        self.settle(node)?;
        let after: Vec<ObjectId> = self.order.read()?.iter().map(|entry| entry.id).collect();
        if before != after || is_lost && self.order.forgotten() == forgotten {
            return Err(Breach::new(Guarantee::OneOrder, "what the order had lost did not come back"));
        }
        self.check()
    }

    /// Settles a node: nothing fails any more, and the node asks until it has all.
    fn settle(&mut self, node: usize) -> Result<(), Breach> {
        self.order.set_loss(0);
        self.nodes[node].disk.heal();
        self.set_clock_right(node);
        for _ in 0..TRIES {
            self.catch_up(node)?;
            let newest = self.order.read()?.last().map(|entry| entry.id);
            if newest.is_some() && newest == Some(self.nodes[node].store().head().commit) {
                return Ok(());
            }
        }
        Err(Breach::new(Guarantee::GoesOn, format!("{} does not catch up", NAMES[node])))
    }

    fn recover(&mut self, node: usize) -> Result<(), Breach> {
        self.script.note_steps("", self.order.take_trace());
        self.nodes[node].note_steps(self.script);
        if self.nodes[node].disk.is_down() {
            self.figures.crashes += 1;
            self.nodes[node].power_up(&mut self.chance, self.script);
            return self.start(node);
        }
        self.check()
    }

    /// The order has what was answered, and each node a beginning of it.
    fn check(&mut self) -> Result<(), Breach> {
        let entries = self.order.read()?;
        let ids: BTreeSet<ObjectId> = entries.iter().map(|entry| entry.id).collect();
        if !entries.is_empty() {
            self.expected.check_history(&entries)?;
        }
        self.order.check_times()?;
        if let Some(passed) = self.order.first_passed() {
            return Err(Breach::new(Guarantee::ReplayAccepts, passed));
        }
        for (node, name) in self.nodes.iter().zip(NAMES) {
            let Some(head) = node.try_store().map(|store| store.head().commit) else { continue };
            if !head.is_null() && !ids.contains(&head) {
                let what = format!("{name} has the commit {head}, and the order does not");
                return Err(Breach::new(Guarantee::OneOrder, what));
            }
        }
        self.figures.commits = entries.len();
        Ok(())
    }

    fn end(mut self) -> Result<RunFigures, Breach> {
        self.script.note("in the end");
        self.order.deliver();
        for node in 0..self.nodes.len() {
            self.settle(node)?;
            self.restart(node)?;
            self.settle(node)?;
        }
        self.change(0)?;
        for node in 0..self.nodes.len() {
            self.settle(node)?;
        }
        let files = self.expected.check_history(&self.order.read()?)?;
        for node in &self.nodes {
            check_head(&node.store().head(), &files)?;
            check_index(&node.store().head())?;
            self.figures.steps += node.disk.steps();
        }
        let first = self.nodes.first_mut().expect("there are two at least");
        first.stop(&mut self.chance, self.script);
        check_replay(first.path(), None)?;
        Ok(self.figures)
    }
}
