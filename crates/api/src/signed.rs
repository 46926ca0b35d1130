//! How far a release has come, and when it was signed, read from a state of the repository.

use countersign_core::{
    documents::{layout, signatures::SignatureSet},
    rules::{
        snapshot::{ReadError, Snapshot},
        stored::{self, IndexState},
    },
    values::{path::RepoPath, time::Timestamp},
};

use crate::catalogue::ReleaseState;

/// The state of a release with its signatures; `None` if there is no such index.
pub fn read_state(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<(ReleaseState, SignatureSet)>, ReadError> {
    let read = |file: &RepoPath| Ok(snapshot.read_signatures(file)?.unwrap_or_default());
    Ok(match stored::index_state(snapshot, path)? {
        None => None,
        Some(IndexState::Collecting) => {
            Some((ReleaseState::Collecting, stored::collected_signatures(snapshot, path)?))
        }
        Some(IndexState::Complete) => Some((ReleaseState::Complete, read(&layout::signatures_of(path))?)),
        Some(IndexState::Revoked) => {
            Some((ReleaseState::Revoked, read(&layout::revoked_signatures_of(path))?))
        }
    })
}

/// The signatures on a revocation that waits for more.
pub fn begun_signatures(snapshot: &impl Snapshot, path: &RepoPath) -> Result<SignatureSet, ReadError> {
    let set = layout::pending_revocation_signatures_of(path);
    Ok(snapshot.read_signatures(&set)?.unwrap_or_default())
}

pub fn first_signed(set: &SignatureSet) -> Option<Timestamp> {
    set.entries.values().map(|collected| collected.collected_at).min()
}

pub fn last_signed(set: &SignatureSet) -> Option<Timestamp> {
    set.entries.values().map(|collected| collected.collected_at).max()
}
