//! The order that nodes share, behind a network that loses, repeats and delays what they send.

use std::{io, sync::Arc, sync::Mutex, sync::MutexGuard, sync::PoisonError, time::Duration};

use countersign_core::values::time::Timestamp;
use countersign_store::sequence::{
    Appended, BatchOffer, BatchTimes, MAX_CLOCK_ERROR, OrderGap, OrderPosition, OrderedBatch, PassedBatch,
    SequenceError, Sequencer, SharedBatch, Votes,
};
use countersign_store::{ObjectId, journal::JournalEntry, journal::read::JournalReader};

use crate::script::{Breach, Chance, Guarantee, SimClock};

#[derive(Debug, Clone)]
pub struct SimOrder(Arc<Mutex<OrderState>>);

#[derive(Debug)]
struct OrderState {
    batches: Vec<SentBatch>,
    /// Batches that are still on their way.
    late: Vec<SentBatch>,
    senders: usize,
    chance: Chance,
    /// How many of a hundred messages are lost.
    loss: usize,
    forgotten: usize,
    /// The clock of the database.
    clock: SimClock,
    /// Batches that a node has passed over, and why. No node that is right makes one.
    passed: Vec<String>,
    care: OrderCare,
    trace: Vec<String>,
}

/// Whether the order compares the times of a batch with its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderCare {
    Compares,
    /// A fault that a run must find.
    TrustsNodes,
}

/// A batch that was sent. Two nodes can make the same commit, and one of them is first.
#[derive(Debug, Clone)]
struct SentBatch {
    sender: usize,
    batch: SharedBatch,
    /// The times; `None` for what is given back.
    times: Option<BatchTimes>,
    /// What the clock of the order showed when it was added.
    added: Timestamp,
}

/// The order as a node asks for it.
#[derive(Debug)]
pub struct SimSequencer {
    order: SimOrder,
    sender: usize,
    is_contended: bool,
}

impl SimOrder {
    pub fn new(chance: Chance, care: OrderCare) -> Self {
        let state = OrderState {
            batches: Vec::new(),
            late: Vec::new(),
            senders: 0,
            chance,
            loss: 10,
            forgotten: 0,
            clock: SimClock::default(),
            passed: Vec::new(),
            care,
            trace: Vec::new(),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    pub fn sequencer(&self) -> SimSequencer {
        let mut order = self.lock();
        order.senders += 1;
        SimSequencer { order: self.clone(), sender: order.senders, is_contended: order.chance.percent(30) }
    }

    /// Sets how many of a hundred messages are lost.
    pub fn set_loss(&self, loss: usize) {
        self.lock().loss = loss;
    }

    /// Delivers what is on its way, in any order.
    pub fn deliver(&self) {
        let mut order = self.lock();
        while !order.late.is_empty() {
            let count = order.late.len();
            let at = order.chance.below(count);
            let batch = order.late.swap_remove(at);
            let done = order.add(&batch);
            order.trace.push(format!("a late batch arrives: {done:?}"));
        }
    }

    /// The database loses its newest batches, as after a failover.
    pub fn lose(&self, count: usize) {
        let mut order = self.lock();
        let left = order.batches.len().saturating_sub(count).max(1);
        order.batches.truncate(left);
        order.late.clear();
    }

    /// Lets time pass for the database.
    pub fn pass_time(&self, seconds: i64) {
        self.lock().clock.pass(seconds);
    }

    pub fn now(&self) -> Timestamp {
        self.lock().clock.now()
    }

    /// Times never run backwards, and each is that of the order's clock, but for some seconds.
    pub fn check_times(&self) -> Result<(), Breach> {
        let mut newest = None;
        for SentBatch { times, added, .. } in &self.lock().batches {
            let Some(times) = times else { continue };
            if newest > Some(times.oldest) || !is_timely(times, *added) {
                let what = format!("a batch of {} to {} was added at {added}", times.oldest, times.newest);
                return Err(Breach::new(Guarantee::OneClock, what));
            }
            newest = Some(times.newest);
        }
        Ok(())
    }

    /// The first batch that a node has passed over, if there is one.
    pub fn first_passed(&self) -> Option<String> {
        self.lock().passed.first().cloned()
    }

    pub fn forgotten(&self) -> usize {
        self.lock().forgotten
    }

    pub fn take_trace(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().trace)
    }

    /// All commits in the order. Each continues the one before.
    pub fn read(&self) -> Result<Vec<JournalEntry>, Breach> {
        let mut reader = JournalReader::default();
        let mut entries: Vec<JournalEntry> = Vec::new();
        for batch in &self.lock().batches {
            reader.push(&batch.batch.body);
            while let Some(entry) = reader.next().map_err(|error| disordered(error.to_string()))? {
                if entry.parent != entries.last().map(|last| last.id) {
                    return Err(disordered(format!(
                        "the commit {} does not continue the one before",
                        entry.id
                    )));
                }
                entries.push(entry);
            }
            reader = JournalReader::default();
        }
        Ok(entries)
    }

    fn lock(&self) -> MutexGuard<'_, OrderState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn disordered(what: String) -> Breach {
    Breach::new(Guarantee::OneOrder, what)
}

impl OrderState {
    /// Adds a batch as the primary key of the table decides. The same batch again is the same batch.
    fn add(&mut self, sent: &SentBatch) -> Appended {
        let is_same = |known: &SentBatch| known.sender == sent.sender && known.batch.head == sent.batch.head;
        if self.batches.iter().any(is_same) {
            return Appended::Done;
        }
        if self.batches.last().map(|last| last.batch.head) != sent.batch.base {
            return Appended::Behind;
        }
        let clock = self.clock.now();
        if self.care == OrderCare::Compares && sent.times.is_some_and(|times| !is_timely(&times, clock)) {
            return Appended::Untimely { clock };
        }
        self.batches.push(SentBatch { added: clock, ..sent.clone() });
        Appended::Done
    }

    fn lose_message(&mut self) -> bool {
        let loss = self.loss;
        self.chance.percent(loss)
    }
}

impl Sequencer for SimSequencer {
    fn append(&mut self, batch: &SharedBatch, offer: &BatchOffer) -> Result<Appended, SequenceError> {
        let mut order = self.order.lock();
        let added = order.clock.now();
        let sent = SentBatch { sender: self.sender, batch: batch.clone(), times: offer.times, added };
        if order.lose_message() {
            let is_late = order.chance.percent(50);
            order.trace.push(format!("the batch is {}", if is_late { "late" } else { "lost" }));
            if is_late {
                order.late.push(sent);
            }
            return Err(lost());
        }
        let mut done = order.add(&sent);
        if order.chance.percent(20) {
            // The connection broke, and the node asked again.
            done = order.add(&sent);
        }
        order.trace.push(format!("append: {done:?}"));
        if order.lose_message() {
            order.trace.push("the answer is lost".to_owned());
            return Err(lost());
        }
        Ok(done)
    }

    fn newest_known(
        &mut self,
        is_known: &mut dyn FnMut(&ObjectId) -> bool,
    ) -> Result<Option<ObjectId>, SequenceError> {
        let mut order = self.order.lock();
        if order.lose_message() {
            return Err(lost());
        }
        Ok(order.batches.iter().rev().map(|sent| sent.batch.head).find(|head| is_known(head)))
    }

    fn batches_after(
        &mut self,
        commit: Option<ObjectId>,
        passed: Option<OrderPosition>,
    ) -> Result<Vec<OrderedBatch>, SequenceError> {
        let commit = passed.map(|passed| passed.head).or(commit);
        let mut order = self.order.lock();
        if order.lose_message() {
            order.trace.push("the question is lost".to_owned());
            return Err(lost());
        }
        let at = match commit {
            None => 0,
            Some(commit) => {
                let at = order.batches.iter().position(|sent| sent.batch.head == commit);
                at.ok_or(SequenceError::Unknown(commit))? + 1
            }
        };
        // At most some of them: the node asks again.
        let most = 1 + order.chance.below(5);
        let given = order.batches.iter().zip(1..).skip(at).take(most);
        let given = given.map(|(sent, seq)| OrderedBatch {
            position: OrderPosition { seq, head: sent.batch.head },
            node: sent.sender.to_string(),
            batch: sent.batch.clone(),
        });
        Ok(given.collect())
    }

    fn pass_over(&mut self, batch: &OrderedBatch, reason: &str) -> Result<(), SequenceError> {
        self.order.lock().passed.push(format!("batch {}: {reason}", batch.position.seq));
        Ok(())
    }

    fn votes_on(&mut self, _: OrderPosition) -> Result<Votes, SequenceError> {
        Ok(Votes { against: vec![self.sender.to_string()], others: Vec::new() })
    }

    fn passed_batches(&self) -> Arc<Vec<PassedBatch>> {
        Arc::default()
    }

    fn find_gap(&mut self) -> Result<Option<OrderGap>, SequenceError> {
        Ok(None)
    }

    fn is_contended(&self) -> bool {
        self.is_contended
    }

    fn note_published(&mut self, _: ObjectId, _: Option<OrderPosition>) {}

    fn ends_with(&self, _: &ObjectId) -> bool {
        false
    }

    fn forget_nonces(&mut self) -> Result<(), SequenceError> {
        self.order.lock().forgotten += 1;
        Ok(())
    }
}

/// Whether the times are right, as the statement decides that adds a batch.
fn is_timely(times: &BatchTimes, clock: Timestamp) -> bool {
    let too_far = |apart: Option<Duration>, most: Duration| apart.is_some_and(|apart| apart > most);
    let is_early = too_far(times.newest.ahead_of(clock), MAX_CLOCK_ERROR) && times.newest > times.base;
    !is_early && !too_far(clock.ahead_of(times.oldest), MAX_CLOCK_ERROR + Duration::from_secs(10))
}

fn lost() -> SequenceError {
    SequenceError::Unavailable(Arc::new(io::Error::other("the message was lost")))
}
