//! What a mirror's data directory remembers beside the repository: its origin, why it no longer follows it, and where
//! their histories part.

use std::{io, path::Path, path::PathBuf, sync::Arc};

use countersign_core::values::shown::shown_text;
use countersign_store::machine::{data_dir::DataDir, disk};
use countersign_store::{ObjectId, StoreError, journal::recent_commits::RecentCommits};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::task::spawn_blocking;

use crate::follow::mirror::exchange::{CommitAfter, JournalClient, OriginAddress};
use crate::follow::outgoing::ExchangeFailure;

/// The most bytes of a file. An address or a refusal takes far less.
const MAX_BYTES: u64 = 64 << 10;

/// Why a mirror has stopped following, until its operator decides (D75).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowStop {
    pub at: String,
    pub origin: String,
    pub reason: String,
    /// The commit that the mirror has where the origin shows another one.
    pub ours: Option<String>,
    /// The commit that the origin shows.
    pub theirs: Option<String>,
}

#[derive(Debug, Error)]
#[error("{} cannot be {action}", path.display())]
pub struct MemoryError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// The files of one data directory. The caller holds its lock.
#[derive(Debug, Clone)]
pub struct MirrorMemory {
    origin: PathBuf,
    refused: PathBuf,
}

impl MirrorMemory {
    pub fn at(data_dir: &Path) -> Self {
        Self { origin: DataDir::mirror_origin_at(data_dir), refused: DataDir::mirror_refused_at(data_dir) }
    }

    /// The address that this mirror has followed, as it was written; `None` if this is no mirror's directory.
    pub fn origin(&self) -> Result<Option<String>, MemoryError> {
        let text = disk::read_text(&self.origin, MAX_BYTES).map_err(fail("read", &self.origin))?;
        Ok(text.map(|text| shown_text(text.trim())))
    }

    pub fn set_origin(&self, origin: &OriginAddress) -> Result<(), MemoryError> {
        disk::replace(&self.origin, &format!("{origin}\n")).map_err(fail("written", &self.origin))
    }

    /// The directory is no mirror's any more.
    pub fn forget_origin(&self) -> Result<(), MemoryError> {
        disk::remove(&self.origin).map(drop).map_err(fail("removed", &self.origin))
    }

    /// A file that cannot be understood is a refusal as well.
    pub fn refusal(&self) -> Result<Option<FollowStop>, MemoryError> {
        let text = disk::read_text(&self.refused, MAX_BYTES).map_err(fail("read", &self.refused))?;
        Ok(text.map(|text| {
            serde_json::from_str(&text).unwrap_or_else(|_| FollowStop {
                at: "an unknown time".to_owned(),
                origin: "unknown".to_owned(),
                reason: format!("{} cannot be understood", self.refused.display()),
                ours: None,
                theirs: None,
            })
        }))
    }

    pub fn set_refusal(&self, refusal: &FollowStop) -> Result<(), MemoryError> {
        let mut text = serde_json::to_string_pretty(refusal).expect("text is always JSON");
        text.push('\n');
        disk::replace(&self.refused, &text).map_err(fail("written", &self.refused))
    }

    /// The operator's decision to try again. Whether there was a refusal.
    pub fn forget_refusal(&self) -> Result<bool, MemoryError> {
        disk::remove(&self.refused).map_err(fail("removed", &self.refused))
    }
}

fn fail(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MemoryError {
    let path = path.to_owned();
    move |source| MemoryError { action, path, source }
}

// The place where the histories of a mirror and its origin part, if the origin does not know the mirror's newest commit
// (D75).

/// The mirror's commits, newest first, up to one of interest.
#[derive(Debug, Default)]
pub(crate) struct OwnPast {
    pub(crate) commits: Vec<ObjectId>,
}

/// What the origin has instead of the mirror's newest commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OriginPast {
    /// The origin ends with a commit that the mirror has as well.
    Ends,
    /// The origin goes on in another way after a commit that both have, or from the very beginning.
    Differs { shared: Option<ObjectId>, ours: ObjectId, theirs: ObjectId },
    /// The origin knows the newest commit by now.
    Same,
}

impl OwnPast {
    /// Reads all commits that lead to this one. Each takes 20 bytes, so a long history takes some megabytes during the
    /// comparison.
    pub(crate) async fn read(recent_commits: Arc<RecentCommits>, tip: ObjectId) -> Result<Self, StoreError> {
        let read =
            move || recent_commits.read_back(tip).map(|commit| commit.map(|commit| commit.id)).collect();
        let commits = spawn_blocking(read).await.unwrap_or(Err(StoreError::Panicked))?;
        Ok(Self { commits })
    }

    /// Finds the newest commit that the origin knows. It asks in growing steps from the newest commit on, because an
    /// origin that is a little behind knows one of the first, and then halves what is left.
    pub(crate) async fn compare(&self, origin: &JournalClient) -> Result<OriginPast, ExchangeFailure> {
        // It did not know the newest one. Behind the first commit there is the beginning, which every origin knows.
        let (mut unknown, mut known) = (0, self.commits.len() + 1);
        while known - unknown > 1 {
            let middle = usize::midpoint(known, unknown).min(2 * unknown + 1);
            let (shared, ours) = (self.commits.get(middle).copied(), self.commits[middle - 1]);
            match origin.next_after(shared).await? {
                CommitAfter::Unknown => unknown = middle,
                CommitAfter::Nothing => return Ok(OriginPast::Ends),
                CommitAfter::Next(theirs) if theirs == ours => known = middle,
                CommitAfter::Next(theirs) => return Ok(OriginPast::Differs { shared, ours, theirs }),
            }
        }
        // It has learnt the rest meanwhile.
        Ok(OriginPast::Same)
    }
}
