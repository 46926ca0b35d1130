//! One commit, with all that is needed to repeat it.

use countersign_core::{rules::snapshot::Change, values::time::Timestamp};
use gix::ObjectId;

use crate::commit::Author;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The commit, as the sender names it. A follower makes the commit again and compares.
    pub id: ObjectId,
    /// `None` for the first commit.
    pub parent: Option<ObjectId>,
    pub author: Author,
    /// In whole seconds.
    pub time: Timestamp,
    /// Its message is as the commit records it.
    pub change: Change,
}
