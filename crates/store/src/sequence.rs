//! Several nodes, one order: what the writer asks of the database that they share.

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use countersign_core::values::{bounds, time::Timestamp};
use gix::ObjectId;
use thiserror::Error;

/// A batch of journal entries that is larger than this gets no more.
pub const BATCH_BYTES: usize = bounds::SHARED_BATCH_ENOUGH_BYTES;

/// The most that a node's clock can be away from the order's (D194). A node whose clock is further away accepts no
/// changes.
pub const MAX_CLOCK_ERROR: Duration = Duration::from_secs(5);
/// The most commits that are put into the order together.
pub const BATCH_COMMITS: usize = 256;

/// Commits that are put into the order together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBatch {
    /// The commit that the first of them continues; `None` at the very beginning.
    pub base: Option<ObjectId>,
    /// The last commit of the batch.
    pub head: ObjectId,
    pub commits: usize,
    /// The journal entries of the commits.
    pub body: Bytes,
}

/// A batch that has its place in the order. It counts if the rules give it (D195).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedBatch {
    pub position: OrderPosition,
    /// The node that made the batch.
    pub node: String,
    pub batch: SharedBatch,
}

/// A place in the order, and the last commit of the batch that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderPosition {
    /// The first batch has the number 1.
    pub seq: i64,
    pub head: ObjectId,
}

/// How a node offers a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOffer {
    /// The times; `None` if the database had the batch before and lost it: what is given back is old.
    pub times: Option<BatchTimes>,
    /// The newest batch that this node has passed over since the base.
    pub passed: Option<OrderPosition>,
}

/// The times at which the commits of a batch were made. The order compares them with its own clock (D194).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchTimes {
    /// The time of the base. A history can be ahead of all clocks, and then it stands still.
    pub base: Timestamp,
    pub oldest: Timestamp,
    pub newest: Timestamp,
}

/// What became of a batch that a node offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// The batch is the next one, for every node and for ever.
    Done,
    /// Another node's batch is the next one. This one will never be.
    Behind,
    /// The batch has times that the order's clock, which shows `clock`, does not allow. It will never be in the order.
    Untimely { clock: Timestamp },
}

/// Batches that are missing between others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderGap {
    /// The last commit before the missing batches.
    pub before: ObjectId,
    /// The commit that the next batch continues.
    pub end: ObjectId,
    pub missing: usize,
}

/// What the nodes of a cluster say of a batch that one of them passes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Votes {
    /// The nodes that pass over the batch.
    pub against: Vec<String>,
    /// The other nodes that are there.
    pub others: Vec<String>,
}

impl Votes {
    /// Whether the batch is passed over: by half of the nodes, so that one of two can go on without the one that made
    /// it.
    pub fn is_passed_over(&self) -> bool {
        self.against.len() >= self.others.len()
    }
}

/// A batch that nodes have passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedBatch {
    pub position: OrderPosition,
    /// The node that made the batch.
    pub node: String,
    /// Why the first node passed over the batch.
    pub reason: String,
    pub votes: Votes,
}

/// The order that nodes share. Every call can block for as long as the database takes, but not for ever.
pub trait Sequencer: Send + fmt::Debug {
    /// Offers a batch as the one after `batch.base`, or after what this node has passed over since. An error means that
    /// the outcome is not known, and that asking again did not help in time: the batch may still turn up as one of
    /// those that [`Sequencer::batches_after`] gives.
    fn append(&mut self, batch: &SharedBatch, offer: &BatchOffer) -> Result<Appended, SequenceError>;

    /// The end of the newest batch for which `is_known` says yes; `None` if no such batch exists.
    fn newest_known(
        &mut self,
        is_known: &mut dyn FnMut(&ObjectId) -> bool,
    ) -> Result<Option<ObjectId>, SequenceError>;

    /// Batches after the one that ends with this commit, oldest first, some megabytes at most; `None` for those from
    /// the very beginning. If this node has passed over batches since, they come after the newest of them. Empty if
    /// there are no more. [`SequenceError::Unknown`] if no batch ends there.
    fn batches_after(
        &mut self,
        commit: Option<ObjectId>,
        passed: Option<OrderPosition>,
    ) -> Result<Vec<OrderedBatch>, SequenceError>;

    /// Passes over a batch. The other nodes are told, and say what they do.
    fn pass_over(&mut self, batch: &OrderedBatch, reason: &str) -> Result<(), SequenceError>;

    /// What the nodes say of this batch, which this node passes over.
    fn votes_on(&mut self, position: OrderPosition) -> Result<Votes, SequenceError>;

    /// The newest batches that nodes have passed over, as far as this node has heard.
    fn passed_batches(&self) -> Arc<Vec<PassedBatch>>;

    /// The first batches that are missing in the order, if later ones are there.
    fn find_gap(&mut self) -> Result<Option<OrderGap>, SequenceError>;

    /// Whether other nodes were faster lately.
    fn is_contended(&self) -> bool {
        false
    }

    /// Whether a writer should ask for what is new before it decides. Then it need not decide twice: the next
    /// [`Sequencer::batches_after`] keeps the others waiting until this node yields. In a turn that lasts there is
    /// nothing new.
    fn wants_turn(&mut self) -> bool {
        false
    }

    /// Lets the other nodes go on, if they wait for this one: no append follows for now.
    fn yield_turn(&mut self) {}

    /// Notes that this node has published everything up to this commit, with which a batch ends, and has passed over
    /// what came after it, up to `passed`.
    fn note_published(&mut self, head: ObjectId, passed: Option<OrderPosition>);

    /// Whether this node has seen a batch that ended with this commit. It ends there again if the database has lost it.
    fn ends_with(&self, commit: &ObjectId) -> bool;

    /// The database has lost batches, and with them nonces: requests signed before now must be refused from here on.
    fn forget_nonces(&mut self) -> Result<(), SequenceError>;
}

#[derive(Debug, Clone, Error)]
pub enum SequenceError {
    #[error("the database cannot be reached")]
    Unavailable(#[source] Arc<dyn StdError + Send + Sync>),
    #[error("no batch in the database ends with the commit {0}")]
    Unknown(ObjectId),
    #[error("the batch {0} is missing in the database, and later ones are there")]
    Missing(i64),
}
