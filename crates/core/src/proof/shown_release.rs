//! A release as it is shown to someone who is asked for a signature about it. Nothing of it is believed.

use thiserror::Error;

use crate::documents::{history::History, index::ReleaseIndex};
use crate::rules::{chain, chain::ChainError, chain::VerifiedChain, place::PlaceError, place::check_place};
use crate::values::{digest::Sha512, json::ParseError, path::RepoPath, shown::shown_text};

/// An index that is about the place where it is shown, and the signers of its project.
#[derive(Debug, Clone)]
pub struct ReadRelease {
    pub index: ReleaseIndex,
    pub index_digest: Sha512,
    pub chain: VerifiedChain,
}

#[derive(Debug, Clone, Error)]
pub enum ShownReleaseError {
    #[error("what is shown as {} is not an index: {error}", shown_text(.path.as_str()))]
    Index { path: RepoPath, error: ParseError },
    #[error("what is shown as {} does not belong there: {error}", shown_text(.path.as_str()))]
    Place { path: RepoPath, error: PlaceError },
    #[error(transparent)]
    History(#[from] ShownHistoryError),
}

#[derive(Debug, Clone, Error)]
#[error("the history shown for {} is not valid: {error}", shown_text(.project.as_str()))]
pub struct ShownHistoryError {
    pub project: RepoPath,
    pub error: ChainError,
}

impl ReadRelease {
    /// Reads the text that is shown as the index at `path`, and the history of its project's signers.
    pub fn read(path: &RepoPath, text: &str, history: &History) -> Result<Self, ShownReleaseError> {
        let index = ReleaseIndex::parse(text.as_bytes())
            .map_err(|error| ShownReleaseError::Index { path: path.clone(), error })?;
        check_place(&index, path).map_err(|error| ShownReleaseError::Place { path: path.clone(), error })?;
        let chain = verify_history(history, &index.project_id)?;
        Ok(Self { index, index_digest: Sha512::of(text.as_bytes()), chain })
    }
}

pub fn verify_history(history: &History, project: &RepoPath) -> Result<VerifiedChain, ShownHistoryError> {
    chain::verify(history, project).map_err(|error| ShownHistoryError { project: project.clone(), error })
}
