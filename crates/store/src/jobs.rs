//! What the writer is asked to do.

use std::panic::{AssertUnwindSafe, catch_unwind};

use countersign_core::{rules::snapshot::Change, values::time::Timestamp};
use tokio::sync::oneshot;

use crate::{error::StoreError, follow::FollowError, journal::entry::JournalEntry, snapshot::head::Head};

pub(crate) enum Job {
    Decide(Box<dyn Decision>),
    Follow {
        entries: Vec<JournalEntry>,
        reply: oneshot::Sender<Result<(), FollowError>>,
    },
    /// Other nodes may have put batches into the shared order.
    CatchUp {
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
}

/// One caller's decision, and the way back to the caller.
pub(crate) trait Decision: Send {
    /// The change to make at `now`, if any. On another head or at another time, it can be asked for again.
    fn decide(&mut self, head: &Head, now: Timestamp) -> Result<Option<Change>, StoreError>;

    /// Tells the caller what was decided last, or why it came to nothing.
    fn answer(self: Box<Self>, fate: Result<(), StoreError>);
}

struct Transaction<D, T, R> {
    decide: D,
    outcome: Option<Result<T, R>>,
    reply: oneshot::Sender<Result<Result<T, R>, StoreError>>,
}

pub(crate) fn transaction<T: Send + 'static, R: Send + 'static>(
    decide: impl Fn(&Head, Timestamp) -> Result<(Change, T), R> + Send + 'static,
    reply: oneshot::Sender<Result<Result<T, R>, StoreError>>,
) -> Box<dyn Decision> {
    Box::new(Transaction { decide, outcome: None, reply })
}

impl<D, T, R> Decision for Transaction<D, T, R>
where
    D: Fn(&Head, Timestamp) -> Result<(Change, T), R> + Send,
    T: Send,
    R: Send,
{
    fn decide(&mut self, head: &Head, now: Timestamp) -> Result<Option<Change>, StoreError> {
        // Nothing that a decision was changing outlives its panic: it can only read.
        let decided =
            catch_unwind(AssertUnwindSafe(|| (self.decide)(head, now))).map_err(|_| StoreError::Panicked)?;
        let (change, outcome) = match decided {
            Ok((change, value)) => (Some(change), Ok(value)),
            Err(refusal) => (None, Err(refusal)),
        };
        self.outcome = Some(outcome);
        Ok(change.filter(|change| !change.is_empty()))
    }

    fn answer(self: Box<Self>, fate: Result<(), StoreError>) {
        // A caller that has gone away does not matter: its change is made all the same.
        let Self { outcome, reply, .. } = *self;
        let _ = reply.send(fate.and_then(|()| outcome.ok_or(StoreError::Closed)));
    }
}
