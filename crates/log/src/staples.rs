//! Staples: what the log proves about one release (D86).

use std::sync::Arc;

use countersign_core::values::{digest::Sha512, path::RepoPath};
use countersign_core::{documents::layout, proof::bundle::Staple, rules::snapshot::Snapshot as _};
use countersign_store::{Head, ObjectId, StoreError};
use quick_cache::sync::Cache;
use thiserror::Error;

use crate::{error::LogError, state::LogState, state::ProvenState};

/// Digests of indexes, which can have megabytes. About 100 bytes each.
const KEPT_DIGESTS: usize = 10_000;

#[derive(Debug, Clone, Error)]
pub enum NoStaple {
    #[error("{0} is not a release of this server")]
    Unknown(RepoPath),
    #[error("{0} still collects signatures: the log has complete releases only")]
    Collecting(RepoPath),
    #[error(
        "{path} is complete, and not in the log yet: the newest checkpoint with enough cosignatures has {size} commits"
    )]
    NotLogged { path: RepoPath, size: u64 },
    #[error("the log still catches up with what is stored: try again in a moment")]
    CatchingUp,
    #[error("the log has no checkpoint yet that enough witnesses have cosigned")]
    NotCosigned,
    #[error("the log has stopped: {0}")]
    Stopped(Arc<LogError>),
    #[error(transparent)]
    Unreadable(#[from] StoreError),
    #[error("the index {0} is not the one that is in the log")]
    OtherIndex(RepoPath),
}

/// The digests of indexes by the id of their content.
#[derive(Debug)]
pub(crate) struct IndexDigests(Cache<ObjectId, Sha512>);

impl Default for IndexDigests {
    fn default() -> Self {
        Self(Cache::new(KEPT_DIGESTS))
    }
}

impl IndexDigests {
    /// Finds the digest of the index at `path`, which is there.
    fn find(&self, head: &Head, path: &RepoPath) -> Result<Option<Sha512>, StoreError> {
        let Some(found) = head.file(path) else { return Ok(None) };
        if let Some(known) = self.0.get(&found.id) {
            return Ok(Some(known));
        }
        let digest = Sha512::of(&head.content(found)?);
        self.0.insert(found.id, digest);
        Ok(Some(digest))
    }
}

impl ProvenState {
    /// Makes the staple of a release. `head` is any state since the checkpoint: a completed index never changes.
    pub(crate) fn staple(
        &self,
        digests: &IndexDigests,
        head: &Head,
        path: &RepoPath,
    ) -> Result<Staple, NoStaple> {
        if self.statuses.release(path).is_none() {
            return Err(explain_absence(self, head, path));
        }
        let digest = digests.find(head, path)?.ok_or_else(|| NoStaple::Unknown(path.clone()))?;
        let statuses = self.statuses.prove_release(path, digest);
        let statuses = statuses.ok_or_else(|| NoStaple::OtherIndex(path.clone()))?;
        Ok(Staple { leaf: self.leaf.clone(), proof: self.proof.clone(), statuses })
    }
}

impl LogState {
    /// What staples are made from.
    pub(crate) fn proven_state(&self) -> Result<Arc<ProvenState>, NoStaple> {
        if let Some(error) = self.trouble.load_full().filter(|error| error.is_final()) {
            return Err(NoStaple::Stopped(error));
        }
        let is_loading = || {
            let checkpoints = self.checkpoints();
            checkpoints.newest().is_none_or(|newest| newest.view.is_none())
        };
        match (self.proven.load_full(), self.trouble.load_full()) {
            (Some(proven), _) => Ok(proven),
            (None, Some(error)) if matches!(*error, LogError::Contradicted { .. }) => {
                Err(NoStaple::Stopped(error))
            }
            (None, _) if is_loading() => Err(NoStaple::CatchingUp),
            (None, _) => Err(NoStaple::NotCosigned),
        }
    }
}

fn explain_absence(proven: &ProvenState, head: &Head, path: &RepoPath) -> NoStaple {
    if head.contains(&layout::signatures_of(path)) {
        NoStaple::NotLogged { path: path.clone(), size: proven.proof.index + 1 }
    } else if head.contains(path) {
        NoStaple::Collecting(path.clone())
    } else {
        NoStaple::Unknown(path.clone())
    }
}
