//! One commit, with all that is needed to repeat it.

use countersign_core::{rules::snapshot::Change, values::time::Timestamp};
use gix::ObjectId;

use crate::commit::Author;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The commit, as the sender names it. A follower makes the commit again and compares.
    pub id: ObjectId,
    /// The commit before; `None` for the first commit.
    pub parent: Option<ObjectId>,
    pub author: Author,
    /// The time of the commit, in whole seconds.
    pub time: Timestamp,
    /// The change, with its message as the commit records it.
    pub change: Change,
}
