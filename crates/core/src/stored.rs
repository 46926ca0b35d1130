//! Reads stored documents through a snapshot. A stored file that does not parse is our fault, never the caller's.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    consent::Consent,
    digest::Sha512,
    history::History,
    json::ParseError,
    key::PublicKey,
    layout::{self, Signable},
    metadata::Metadata,
    path::RepoPath,
    signatures::SignatureSet,
    signers::{SignersFile, keys_of},
    snapshot::{Change, ReadError, Snapshot, StoredSigners},
};

/// A signers file in force, and the project that it governs.
#[derive(Debug, Clone)]
pub struct ActiveSigners {
    pub project: RepoPath,
    pub bytes: Arc<[u8]>,
    pub file: Arc<SignersFile>,
}

/// The nearest active signers file at or above `path`.
pub fn governing_signers(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<ActiveSigners>, ReadError> {
    for dir in path.self_and_ancestors() {
        if let Some(active) = active_signers(snapshot, &dir)? {
            return Ok(Some(active));
        }
    }
    Ok(None)
}

pub fn active_signers(
    snapshot: &impl Snapshot,
    project: &RepoPath,
) -> Result<Option<ActiveSigners>, ReadError> {
    let stored = snapshot.read_signers(&layout::active_signers(project))?;
    Ok(stored.map(|StoredSigners { bytes, file }| ActiveSigners { project: project.clone(), bytes, file }))
}

pub fn history(snapshot: &impl Snapshot, project: &RepoPath) -> Result<History, ReadError> {
    let path = layout::history(project);
    match snapshot.read(&path)? {
        Some(bytes) => parse_stored(&path, History::parse(&bytes)),
        None => Ok(History::default()),
    }
}

/// How far an index has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexState {
    Collecting(SignatureSet),
    Complete,
    Revoked,
}

/// The state of the index at `path`; `None` where there is no such file.
pub fn index_state(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<IndexState>, ReadError> {
    if snapshot.read(path)?.is_none() {
        return Ok(None);
    }
    if let Some(set) = read_signatures(snapshot, &layout::pending_signatures_of(path))? {
        return Ok(Some(IndexState::Collecting(set)));
    }
    if snapshot.read(&layout::signatures_of(path))?.is_some() {
        return Ok(Some(IndexState::Complete));
    }
    if snapshot.read(&layout::revoked_signatures_of(path))?.is_some() {
        return Ok(Some(IndexState::Revoked));
    }
    Err(corrupt(path, "it has no signatures file"))
}

/// Who may still sign a file that collects signatures, and who has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collecting {
    pub accepted: BTreeSet<PublicKey>,
    pub signed: BTreeSet<PublicKey>,
}

/// `None` where `path` is no file that collects signatures, or does so no longer.
pub fn collecting(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Collecting>, ReadError> {
    match layout::signable(path) {
        Some(Signable::Index) => {
            let Some(IndexState::Collecting(set)) = index_state(snapshot, path)? else { return Ok(None) };
            let copy = signers_copy(snapshot, path)?;
            let accepted = keys_of(copy.file.artifact_groups()).collect();
            Ok(Some(Collecting { accepted, signed: set.signers() }))
        }
        Some(Signable::PendingSigners { project }) => {
            let Some(proposal) = StoredProposal::load(snapshot, path)? else { return Ok(None) };
            let current = active_signers(snapshot, &project)?.map(|active| active.file);
            let consent = Consent { current: current.as_deref(), proposed: &proposal.signers };
            let accepted = consent.accepted_signers();
            Ok(Some(Collecting { accepted, signed: proposal.signatures.signers() }))
        }
        None => Ok(None),
    }
}

/// The copy of the signers file that governs an index (D16).
pub fn signers_copy(snapshot: &impl Snapshot, file: &RepoPath) -> Result<StoredSigners, ReadError> {
    let path = layout::signers_copy_of(file);
    snapshot.read_signers(&path)?.ok_or_else(|| corrupt(&path, "it is missing"))
}

/// A signers file with everything that is collected around it, before it is active.
#[derive(Debug, Clone)]
pub struct StoredProposal {
    pub signers_bytes: Arc<[u8]>,
    pub signers: Arc<SignersFile>,
    pub metadata_bytes: Arc<[u8]>,
    pub metadata: Metadata,
    pub registration: Arc<[u8]>,
    pub signatures: SignatureSet,
    pub metadata_signatures: SignatureSet,
}

impl StoredProposal {
    /// The proposal whose signers file is at `path`, pending or superseded.
    pub fn load(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Self>, ReadError> {
        let Some(StoredSigners { bytes, file }) = snapshot.read_signers(path)? else { return Ok(None) };
        let metadata_path = layout::metadata_of(path);
        let metadata_bytes = require(snapshot, &metadata_path)?;
        let signatures = |file: &RepoPath| {
            let path = layout::pending_signatures_of(file);
            read_signatures(snapshot, &path)?.ok_or_else(|| corrupt(&path, "it is missing"))
        };
        Ok(Some(Self {
            signers_bytes: bytes,
            signers: file,
            metadata: parse_stored(&metadata_path, Metadata::parse(&metadata_bytes))?,
            registration: require(snapshot, &layout::registration_of(path))?,
            signatures: signatures(path)?,
            metadata_signatures: signatures(&metadata_path)?,
            metadata_bytes,
        }))
    }

    /// Writes the whole proposal with its signers file at `path`.
    pub fn write_to(&self, change: &mut Change, path: &RepoPath) {
        let metadata_path = layout::metadata_of(path);
        change.write(path.clone(), self.signers_bytes.clone());
        change.write(layout::registration_of(path), self.registration.clone());
        change.write(layout::pending_signatures_of(path), self.signatures.write());
        change.write(layout::pending_signatures_of(&metadata_path), self.metadata_signatures.write());
        change.write(metadata_path, self.metadata_bytes.clone());
    }

    /// The digest that names the signers file.
    pub fn digest(&self) -> Sha512 {
        Sha512::of(&self.signers_bytes)
    }
}

/// Deletes whatever lies below `dir`, unless the change writes it anew.
pub fn delete_below(snapshot: &impl Snapshot, change: &mut Change, dir: &RepoPath) -> Result<(), ReadError> {
    for path in snapshot.files_below(dir)? {
        change.files.entry(path).or_insert(None);
    }
    Ok(())
}

pub fn read_signatures(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<SignatureSet>, ReadError> {
    let bytes = snapshot.read(path)?;
    bytes.map(|bytes| parse_stored(path, SignatureSet::parse(&bytes))).transpose()
}

/// A file that must be there if the repository is whole.
pub fn require(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Arc<[u8]>, ReadError> {
    snapshot.read(path)?.ok_or_else(|| corrupt(path, "it is missing"))
}

pub fn corrupt(path: &RepoPath, reason: impl Into<String>) -> ReadError {
    ReadError { path: path.clone(), reason: reason.into() }
}

pub fn parse_stored<T>(path: &RepoPath, parsed: Result<T, ParseError>) -> Result<T, ReadError> {
    parsed.map_err(|error| corrupt(path, error.to_string()))
}
