//! Following another machine: why a commit of its journal is not repeated.

use gix::ObjectId;
use thiserror::Error;

use crate::error::StoreError;

#[derive(Debug, Clone, Error)]
pub enum FollowError {
    #[error("the commit {id} continues {}, and the newest one here is {}", name(parent.as_ref()), name(newest.as_ref()))]
    Elsewhere { id: ObjectId, parent: Option<ObjectId>, newest: Option<ObjectId> },
    #[error("the commit {claimed} does not have the content that came with it: that makes the commit {made}")]
    OtherId { claimed: ObjectId, made: ObjectId },
    #[error("the rules do not give the commit {id}: {reason}")]
    Illegal { id: ObjectId, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn name(parent: Option<&ObjectId>) -> String {
    parent.map_or_else(|| "none".to_owned(), ToString::to_string)
}
