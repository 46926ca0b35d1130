//! The order of batches: who is next is decided by a primary key in the database (D70).

pub(crate) mod add;
mod exchange;

use std::{io, sync::Arc, time::Duration};

use countersign_store::sequence::{
    Appended, BatchOffer, OrderGap, OrderPosition, OrderedBatch, PassedBatch, SequenceError, Sequencer,
    SharedBatch, Votes,
};
use countersign_store::{ObjectId, machine::clock::Clock};

use crate::database::{Database, ThreadRuntime};
pub(crate) use crate::order::exchange::LOOKED_AT;
pub use crate::order::exchange::{MAX_BODY_BYTES, TurnTimes};
use crate::{error::DatabaseError, node::AppliedBatch, node::NodeState, order::exchange::OrderExchange};

/// How long an append or a question can take, all repetitions together.
pub const ORDER_LIMIT: Duration = Duration::from_secs(10);

/// The shared order, as the store's writer asks for it. It has a connection of its own, and moves its bytes in the
/// thread that asks. So a thread of an async runtime cannot ask.
#[derive(Debug)]
pub struct SharedOrder {
    order: OrderExchange,
    // Dropped after what uses it.
    runtime: ThreadRuntime,
}

impl SharedOrder {
    pub fn new(database: Database, node: Arc<NodeState>, clock: Clock) -> io::Result<Self> {
        let runtime = ThreadRuntime::new(&database)?;
        let order = OrderExchange::new(database, node, clock, ORDER_LIMIT);
        Ok(Self { order, runtime })
    }

    /// Sets a limit instead of [`ORDER_LIMIT`].
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.order.limit = limit;
        self
    }

    pub fn with_turn_times(mut self, times: TurnTimes) -> Self {
        self.order.turn_times = times;
        self
    }
}

impl Sequencer for SharedOrder {
    fn append(&mut self, batch: &SharedBatch, offer: &BatchOffer) -> Result<Appended, SequenceError> {
        self.runtime.block_on(self.order.append(batch, offer)).map_err(unavailable)
    }

    fn newest_known(
        &mut self,
        is_known: &mut dyn FnMut(&ObjectId) -> bool,
    ) -> Result<Option<ObjectId>, SequenceError> {
        self.runtime.block_on(self.order.find_newest_known(is_known)).map_err(unavailable)
    }

    fn batches_after(
        &mut self,
        commit: Option<ObjectId>,
        passed: Option<OrderPosition>,
    ) -> Result<Vec<OrderedBatch>, SequenceError> {
        let given = self.runtime.block_on(async {
            match (passed, commit) {
                (Some(passed), _) => self.order.give_after(passed).await,
                (None, Some(commit)) => self.order.give_after_commit(commit).await,
                (None, None) => self.order.give_first().await.map(Some),
            }
        });
        let unknown = passed.map(|passed| passed.head).or(commit);
        match (given.map_err(unavailable)?, unknown) {
            (Some(given), _) => Ok(given),
            (None, Some(unknown)) => Err(SequenceError::Unknown(unknown)),
            (None, None) => Ok(Vec::new()),
        }
    }

    fn pass_over(&mut self, batch: &OrderedBatch, reason: &str) -> Result<(), SequenceError> {
        self.runtime.block_on(self.order.pass_over(batch, reason)).map_err(unavailable)
    }

    fn votes_on(&mut self, position: OrderPosition) -> Result<Votes, SequenceError> {
        self.runtime.block_on(self.order.ask_votes(position)).map_err(unavailable)
    }

    fn passed_batches(&self) -> Arc<Vec<PassedBatch>> {
        self.order.node.passed()
    }

    fn find_gap(&mut self) -> Result<Option<OrderGap>, SequenceError> {
        if !self.order.node.has_gap() {
            return Ok(None);
        }
        self.runtime.block_on(self.order.find_gap()).map_err(unavailable)
    }

    fn is_contended(&self) -> bool {
        self.order.is_contended()
    }

    fn wants_turn(&mut self) -> bool {
        match self.order.turn_age() {
            Some(age) if age < self.order.turn_times.kept => return false,
            Some(_) => self.yield_turn(),
            None => {}
        }
        self.order.want_turn()
    }

    fn yield_turn(&mut self) {
        // Without a connection there is no turn.
        let _ = self.runtime.block_on(async {
            self.order.yield_turn().await;
            Ok(())
        });
    }

    fn note_published(&mut self, head: ObjectId, passed: Option<OrderPosition>) {
        // Every batch that a node publishes was appended or given just before.
        if let Some(seq) = self.order.recent.seq(&head) {
            let position = passed.unwrap_or(OrderPosition { seq, head });
            self.order.node.note_applied(AppliedBatch { head: Some(head), ..AppliedBatch::at(position) });
        }
    }

    fn ends_with(&self, commit: &ObjectId) -> bool {
        self.order.recent.get(commit).is_some()
    }

    fn forget_nonces(&mut self) -> Result<(), SequenceError> {
        self.runtime.block_on(self.order.raise_nonce_floor()).map_err(unavailable)
    }
}

fn unavailable(error: DatabaseError) -> SequenceError {
    if let DatabaseError::Missing(seq) = error {
        return SequenceError::Missing(seq);
    }
    SequenceError::Unavailable(Arc::new(error))
}
