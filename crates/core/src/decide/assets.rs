//! Registering the files of a release (spec §4.10; D11, D16, D23, D36).

use thiserror::Error;

use super::titles;
use crate::{
    index::{PublishedFile, ReleaseIndex},
    key::PublicKey,
    layout,
    path::RepoPath,
    signatures::SignatureSet,
    snapshot::{Change, ReadError, Snapshot},
    stored::{self, ActiveSigners, IndexState},
    time::Timestamp,
};

/// A release as its source describes it.
#[derive(Debug, Clone)]
pub struct Release {
    /// The directory that the index is for.
    pub dir: RepoPath,
    pub release_url: Option<String>,
    pub published_on: Option<Timestamp>,
    /// Sorted by name, one entry a file.
    pub published_files: Vec<PublishedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AssetsRefusal {
    #[error("No signers file found for: {0}. Register the project first with POST /v1/register_repo")]
    NoSigners(RepoPath),
    #[error("the key {key} is not in the current signers file of {project}")]
    NotASigner { key: PublicKey, project: RepoPath },
    #[error("Release already registered: {0}. A directory holds one release: use one per version")]
    AlreadyRegistered(RepoPath),
    #[error("{project} has {limit} releases that still wait for signatures: sign some of them first")]
    TooManyCollecting { project: RepoPath, limit: usize },
    #[error(transparent)]
    Stored(#[from] ReadError),
}

/// Whether this key may register a release in this directory now: asked before anything is fetched.
pub fn check_assets(
    snapshot: &impl Snapshot,
    dir: &RepoPath,
    caller: &PublicKey,
) -> Result<ActiveSigners, AssetsRefusal> {
    let active = stored::governing_signers(snapshot, dir)?;
    let active = active.ok_or_else(|| AssetsRefusal::NoSigners(dir.clone()))?;
    if !active.file.lists(caller) {
        return Err(AssetsRefusal::NotASigner { key: *caller, project: active.project });
    }
    let index = layout::index_in(dir);
    match stored::index_state(snapshot, &index)? {
        Some(IndexState::Complete | IndexState::Revoked) => Err(AssetsRefusal::AlreadyRegistered(index)),
        Some(IndexState::Collecting(_)) | None => Ok(active),
    }
}

/// Gives the path of the index.
pub fn register_assets(
    snapshot: &impl Snapshot,
    release: &Release,
    caller: &PublicKey,
    max_collecting: usize,
    now: Timestamp,
) -> Result<(Change, RepoPath), AssetsRefusal> {
    let active = check_assets(snapshot, &release.dir, caller)?;
    let path = layout::index_in(&release.dir);
    let existing = snapshot.read(&path)?;
    let title = match &existing {
        Some(bytes) => {
            let existing = stored::parse_stored(&path, ReleaseIndex::parse(bytes))?;
            if existing.published_files == release.published_files {
                return Err(AssetsRefusal::AlreadyRegistered(path));
            }
            titles::CORRECT
        }
        None if snapshot.collecting_indexes(&active.project).len() >= max_collecting => {
            let project = active.project;
            return Err(AssetsRefusal::TooManyCollecting { project, limit: max_collecting });
        }
        None => titles::ADD,
    };
    let index = ReleaseIndex {
        project_id: active.project.clone(),
        release_url: release.release_url.clone(),
        mirrored_on: now.to_whole_seconds(),
        published_on: release.published_on,
        published_files: release.published_files.clone(),
    };
    let count = index.published_files.len();
    let mut change = Change::new(format!("{title} {path}\n\nBy: {caller}\nFiles: {count}\n"));
    change.write(layout::signers_copy_of(&path), active.bytes);
    change.write(layout::pending_signatures_of(&path), SignatureSet::default().write());
    change.write(path.clone(), index.write());
    Ok((change, path))
}
