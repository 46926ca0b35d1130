//! Where the histories of a mirror and its origin part, when the origin does not know the mirror's newest commit (D75).

use std::sync::Arc;

use countersign_store::{ObjectId, StoreError, recent_commits::RecentCommits};
use thiserror::Error;
use tokio::task::spawn_blocking;

use super::exchange::{AskError, JournalClient};

/// The mirror's commits, newest first, up to one of interest.
#[derive(Debug, Default)]
pub(super) struct OwnPast {
    commits: Vec<ObjectId>,
}

/// What the origin has instead of the mirror's newest commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OriginPast {
    /// It ends with a commit that the mirror has as well.
    Ends(Option<ObjectId>),
    /// It goes on in another way after a commit that both have, or from the very beginning.
    Differs { shared: Option<ObjectId>, ours: ObjectId, theirs: ObjectId },
    /// It knows the newest commit by now.
    Same,
}

#[derive(Debug, Error)]
pub(crate) enum CompareError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("the mirror's own commits cannot be read")]
    Store(#[from] StoreError),
}

impl OwnPast {
    /// All commits that lead to this one. 20 bytes each: some megabytes for a long history, and only for the comparison.
    pub(super) async fn read(recent_commits: Arc<RecentCommits>, tip: ObjectId) -> Result<Self, StoreError> {
        let read =
            move || recent_commits.read_back(tip).map(|commit| commit.map(|commit| commit.id)).collect();
        let commits = spawn_blocking(read).await.unwrap_or(Err(StoreError::Panicked))?;
        Ok(Self { commits })
    }

    pub(super) fn begins_at(&self, tip: ObjectId) -> bool {
        self.commits.first() == Some(&tip)
    }

    /// Finds the newest commit that the origin knows: at growing distances from the newest one, then between the last one
    /// that it does not know and the first that it knows.
    pub(super) async fn compare(&self, origin: &JournalClient) -> Result<OriginPast, CompareError> {
        let (mut unknown, mut distance) = (None, 0);
        let mut known = loop {
            // Behind the first commit there is the beginning, which every origin knows.
            let at = distance.min(self.commits.len());
            let next = match self.ask(origin, at).await? {
                None => {
                    unknown = Some(at);
                    distance = if distance == 0 { 1 } else { distance * 2 };
                    continue;
                }
                Some(next) => next,
            };
            if let Some(past) = self.judge(at, next) {
                return Ok(past);
            }
            break at;
        };
        // The origin has the commit after `known` as well, and not the one at `unknown`.
        while let Some(gap) = unknown.filter(|unknown| known - unknown > 1) {
            let middle = usize::midpoint(known, gap);
            match self.ask(origin, middle).await? {
                None => unknown = Some(middle),
                Some(next) => match self.judge(middle, next) {
                    Some(past) => return Ok(past),
                    None => known = middle,
                },
            }
        }
        // It has learnt the rest meanwhile.
        Ok(OriginPast::Same)
    }

    /// What the origin has after the commit at this distance from the newest one; `None` if it does not know the commit.
    async fn ask(
        &self,
        origin: &JournalClient,
        distance: usize,
    ) -> Result<Option<Option<ObjectId>>, CompareError> {
        match origin.next_after(self.at(distance)).await {
            Ok(next) => Ok(Some(next)),
            Err(AskError::UnknownCommit(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// `None` if the origin goes on like the mirror.
    fn judge(&self, distance: usize, next: Option<ObjectId>) -> Option<OriginPast> {
        let Some(ours) = distance.checked_sub(1).and_then(|after| self.at(after)) else {
            return Some(OriginPast::Same);
        };
        match next {
            None => Some(OriginPast::Ends(self.at(distance))),
            Some(theirs) if theirs == ours => None,
            Some(theirs) => Some(OriginPast::Differs { shared: self.at(distance), ours, theirs }),
        }
    }

    fn at(&self, distance: usize) -> Option<ObjectId> {
        self.commits.get(distance).copied()
    }
}
