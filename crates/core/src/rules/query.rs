//! What may be asked about a file, and by whom (spec §4.4, §4.5, §4.7; D18).

use std::{collections::BTreeMap, sync::Arc};

use thiserror::Error;

use crate::rules::snapshot::{ReadError, Snapshot};
use crate::rules::{stored, stored::ReleaseState, stored::StoredProposal};
use crate::{documents::layout, documents::layout::Signable, values::key::PublicKey, values::path::RepoPath};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatusRefusal {
    #[error("File not found: {0}")]
    NotFound(RepoPath),
    #[error("No signers file found for: {0}")]
    NoSigners(RepoPath),
    #[error("the key {key} is not in the current signers file of {path}")]
    NotASigner { key: PublicKey, path: RepoPath },
    #[error(transparent)]
    Stored(#[from] ReadError),
}

/// How far an index or a proposed signers file has come, for one of its signers.
pub fn file_status(
    snapshot: &impl Snapshot,
    path: &RepoPath,
    caller: &PublicKey,
) -> Result<ReleaseState, StatusRefusal> {
    let not_found = || StatusRefusal::NotFound(path.clone());
    let not_a_signer = || StatusRefusal::NotASigner { key: *caller, path: path.clone() };
    match layout::signable(path).ok_or_else(not_found)? {
        Signable::Index => {
            let state = stored::index_state(snapshot, path)?.ok_or_else(not_found)?;
            let active = stored::governing_signers(snapshot, path)?;
            let active = active.ok_or_else(|| StatusRefusal::NoSigners(path.clone()))?;
            if !active.file.lists(caller) {
                return Err(not_a_signer());
            }
            Ok(state)
        }
        Signable::PendingSigners { project } => {
            let proposal = StoredProposal::load(snapshot, path)?.ok_or_else(not_found)?;
            let active = stored::active_signers(snapshot, &project)?;
            let in_active = active.is_some_and(|active| active.file.lists(caller));
            if !in_active && !proposal.signers.lists(caller) {
                return Err(not_a_signer());
            }
            Ok(ReleaseState::Collecting)
        }
    }
}

/// Files by path, with their content.
pub type FilesToSign = BTreeMap<RepoPath, Arc<[u8]>>;

/// The files that a signer of `path` signs; `None` where there is no such file.
pub fn files_to_sign(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<FilesToSign>, ReadError> {
    let Some(bytes) = snapshot.read(path)? else { return Ok(None) };
    let mut files = BTreeMap::from([(path.clone(), bytes)]);
    let is_pending = matches!(layout::signable(path), Some(Signable::PendingSigners { .. }));
    if is_pending || layout::project_of_active_signers(path).is_some() {
        let metadata = layout::metadata_of(path);
        let bytes = stored::require(snapshot, &metadata)?;
        files.insert(metadata, bytes);
    }
    Ok(Some(files))
}
