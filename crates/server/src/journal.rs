//! Followers: other machines that read the journal (D68). Some read, others are up to date and wait for the next commit.
//!
//! What a follower reads is made part by part, beside the runtime, as fast as it takes them. No change waits for it.

mod followers;
mod sent;

use std::sync::Arc;

use countersign_api::error_code::ErrorCode;
use countersign_store::ObjectId;

pub use self::{
    followers::{
        CommitNews, FollowRequest, Followers, MAX_READING, MAX_READING_PER_ADDRESS, MAX_WAITING,
        MAX_WAITING_PER_ADDRESS, MIN_BYTES_PER_SECOND,
    },
    sent::SentJournal,
};
use crate::{error::ApiError, held_store::HeldStore, limits::semaphore::Claimant};

/// The journal after what a follower has.
pub(crate) async fn begin(
    followers: &Arc<Followers>,
    store: Arc<HeldStore>,
    after: Option<ObjectId>,
    claimant: Claimant,
) -> Result<SentJournal, ApiError> {
    let place = followers.reading.take(claimant.clone()).await.map_err(|_| ApiError::too_many_followers())?;
    let found = place.keep(followers.read(move || store.journal(after))).await?;
    let found = found?.map_err(ApiError::unreadable_journal)?;
    let export =
        found.ok_or_else(|| not_in_history(after.map_or_else(String::new, |after| after.to_string())))?;
    Ok(SentJournal { followers: Arc::clone(followers), export, place, claimant })
}

/// The answer to a follower whose newest commit this server does not have.
pub fn not_in_history(after: impl std::fmt::Display) -> ApiError {
    let message = format!(
        "the commit {after} is not in the history of this server: this is another server, it has not caught up yet, or \
         its history was rewritten. Compare the two, or leave out `after` to begin with the first commit"
    );
    ApiError::new(ErrorCode::UnknownCommit, message)
}
