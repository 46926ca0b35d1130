//! Following another machine: why a commit of its journal is not repeated.

use gix::ObjectId;
use thiserror::Error;

use crate::{
    error::StoreError,
    journal::entry::JournalEntry,
    repository::batch::{Batch, NewCommit},
    snapshot::head::Head,
};

#[derive(Debug, Clone, Error)]
pub enum FollowError {
    #[error("the commit {id} continues {}, and the newest one here is {}", name(parent.as_ref()), name(newest.as_ref()))]
    Elsewhere { id: ObjectId, parent: Option<ObjectId>, newest: Option<ObjectId> },
    #[error("the commit {claimed} does not have the content that came with it: that makes the commit {made}")]
    OtherId { claimed: ObjectId, made: ObjectId },
    #[error("the commit {id} breaks the rules: {reason}")]
    Illegal { id: ObjectId, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The commit of an entry, made again on top of `head`: it must continue that one, and have the id that it claims.
pub(crate) fn prepare_again<'a>(
    batch: &Batch,
    head: &Head,
    entry: &'a JournalEntry,
) -> Result<NewCommit<'a>, FollowError> {
    let JournalEntry { id, parent, author, time, change } = entry;
    let newest = Some(head.commit).filter(|commit| !commit.is_null());
    if *parent != newest {
        return Err(FollowError::Elsewhere { id: *id, parent: *parent, newest });
    }
    let new = batch.prepare(head, change, &author.at(*time))?;
    if new.tip != *id {
        return Err(FollowError::OtherId { claimed: *id, made: new.tip });
    }
    Ok(new)
}

fn name(parent: Option<&ObjectId>) -> String {
    parent.map_or_else(|| "none".to_owned(), ToString::to_string)
}
