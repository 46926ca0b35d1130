//! Which of the newest batches is where in the order, and under which id.

use std::collections::{HashMap, VecDeque};

use countersign_store::ObjectId;
use uuid::Uuid;

/// How many batches are remembered. A failover loses far fewer.
pub(crate) const MAX_RECENT: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchIdentity {
    pub(crate) id: Uuid,
    /// The node that made the batch.
    pub(crate) node: String,
    /// The number of the batch; `None` until the database has it.
    pub(crate) seq: Option<i64>,
}

/// Batches by their last commits. One that the database lost is appended again under the same id, by each node that
/// has it: so the first one wins, and the others see that it is there.
#[derive(Debug, Default)]
pub(crate) struct RecentBatches {
    by_head: HashMap<ObjectId, BatchIdentity>,
    oldest_first: VecDeque<ObjectId>,
}

impl RecentBatches {
    pub(crate) fn get(&self, head: &ObjectId) -> Option<&BatchIdentity> {
        self.by_head.get(head)
    }

    pub(crate) fn seq(&self, head: &ObjectId) -> Option<i64> {
        self.get(head).and_then(|batch| batch.seq)
    }

    pub(crate) fn put(&mut self, head: ObjectId, batch: BatchIdentity) {
        if self.by_head.insert(head, batch).is_none() {
            self.oldest_first.push_back(head);
        }
        if self.oldest_first.len() > MAX_RECENT
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.by_head.remove(&oldest);
        }
    }
}
