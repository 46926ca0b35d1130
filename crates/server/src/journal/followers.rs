//! How many can follow at a time, and in what order they read.

use std::{sync::Arc, time::Duration};

use countersign_store::{ObjectId, Store};
use tokio::{sync::watch, time::timeout};

use crate::{
    counting::Counter,
    error::ApiError,
    limits::semaphore::{Claimant, FairSemaphore, MinimumPace, SemaphoreRules},
    sending::{few_turns, run_in_turn},
};

/// Followers that read at the same time, and those of one address.
pub const MAX_READING: usize = 32;
pub const MAX_READING_PER_ADDRESS: usize = 8;
/// Followers that wait for a commit, and those of one address.
pub const MAX_WAITING: usize = 512;
pub const MAX_WAITING_PER_ADDRESS: usize = 64;

/// A follower that is slower loses its place, if others want it.
pub const MIN_BYTES_PER_SECOND: usize = 32 << 10;

const READING: SemaphoreRules = SemaphoreRules {
    share: MAX_READING_PER_ADDRESS,
    waiting: 2 * MAX_READING,
    max_wait: Duration::from_secs(10),
    grace: Some(Duration::from_secs(3)),
    pace: Some(MinimumPace { bytes_per_second: MIN_BYTES_PER_SECOND as u64, after: Duration::from_secs(3) }),
    ..SemaphoreRules::of(MAX_READING)
};
const WAITING: SemaphoreRules = SemaphoreRules {
    share: MAX_WAITING_PER_ADDRESS,
    grace: Some(Duration::ZERO),
    ..SemaphoreRules::of(MAX_WAITING)
};

#[derive(Debug)]
pub struct Followers {
    pub reading: Arc<FairSemaphore>,
    pub waiting: Arc<FairSemaphore>,
    /// How many read from disk at the same time.
    turns: Arc<FairSemaphore>,
    /// Commits that were sent, to all of them.
    pub sent: Counter,
}

/// What a follower asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowRequest {
    /// The newest commit that it has. `None`: it has nothing.
    pub after: Option<ObjectId>,
    /// How long it waits if there is nothing new.
    pub wait: Duration,
}

/// Tells of new commits, and of the end of the server.
#[derive(Debug)]
pub struct CommitNews {
    pub end: watch::Receiver<i64>,
    pub is_stopping: watch::Receiver<bool>,
}

impl Default for Followers {
    fn default() -> Self {
        Self {
            reading: FairSemaphore::new(READING),
            waiting: FairSemaphore::new(WAITING),
            turns: few_turns(usize::MAX, usize::MAX, Duration::MAX),
            sent: Counter::default(),
        }
    }
}

impl Followers {
    /// Returns when there is something after what the follower has, or when its time is over.
    pub async fn wait(
        &self,
        store: &Store,
        request: FollowRequest,
        claimant: Claimant,
        mut news: CommitNews,
    ) -> Result<(), ApiError> {
        let is_up_to_date = || {
            let head = store.glance().commit;
            if head.is_null() { request.after.is_none() } else { request.after == Some(head) }
        };
        if request.wait.is_zero() || !is_up_to_date() {
            return Ok(());
        }
        let place = self.waiting.try_take(claimant).map_err(|_| ApiError::too_many_followers())?;
        let told = async { while is_up_to_date() && news.end.changed().await.is_ok() {} };
        tokio::select! {
            _ = timeout(request.wait, told) => {}
            _ = news.is_stopping.wait_for(|is_stopping| *is_stopping) => {}
            () = place.lost() => return Err(ApiError::too_many_followers()),
        }
        Ok(())
    }

    /// Reads outside the runtime, when it is its turn.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        run_in_turn(&self.turns, Claimant::default(), read).await
    }
}
