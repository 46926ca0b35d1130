//! Several nodes, one order: what the writer asks of the database that they share.

use std::{error::Error as StdError, fmt, sync::Arc};

use bytes::Bytes;
use countersign_core::values::bounds;
use gix::ObjectId;
use thiserror::Error;

/// A batch of journal entries that is larger than this gets no more.
pub const BATCH_BYTES: usize = bounds::SHARED_BATCH_ENOUGH_BYTES;

/// Commits that are put into the order together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBatch {
    /// The commit that the first of them continues; `None` at the very beginning.
    pub base: Option<ObjectId>,
    /// The last of them.
    pub head: ObjectId,
    pub commits: usize,
    /// Their journal entries.
    pub body: Bytes,
}

/// What became of a batch that a node offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is the next one, for every node and for ever.
    Done,
    /// Another node's batch is the next one. This one will never be.
    Behind,
}

/// Where the order is kept. Every call can block for as long as the database takes, but not for ever.
pub trait Sequencer: Send + fmt::Debug {
    /// Offers a batch as the one after `batch.base`. An error means that the outcome is not known, and that asking again
    /// did not help in time: the batch may still turn up as one of those that [`Sequencer::batches_after`] gives.
    fn append(&mut self, batch: &SharedBatch) -> Result<Appended, SequenceError>;

    /// The end of the newest batch for which `is_known` says yes; `None` if no such batch exists.
    fn newest_known(
        &mut self,
        is_known: &mut dyn FnMut(&ObjectId) -> bool,
    ) -> Result<Option<ObjectId>, SequenceError>;

    /// Batches after the one that ends with this commit, oldest first, some megabytes at most; `None` for those from the
    /// very beginning. Empty if there are no more. [`SequenceError::Unknown`] if no batch ends there.
    fn batches_after(&mut self, commit: Option<ObjectId>) -> Result<Vec<SharedBatch>, SequenceError>;

    /// Whether other nodes were faster lately.
    fn is_contended(&self) -> bool {
        false
    }

    /// Whether a writer should ask for what is new before it decides. Then it need not decide twice: the next
    /// [`Sequencer::batches_after`] keeps the others waiting until this node yields. In a turn that lasts there is nothing
    /// new.
    fn wants_turn(&mut self) -> bool {
        false
    }

    /// No append follows for now: lets the others go on, if they wait for this node.
    fn yield_turn(&mut self) {}

    /// This node has published everything up to the end of this batch.
    fn note_published(&mut self, head: ObjectId);

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
}
