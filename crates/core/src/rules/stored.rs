//! Reads stored documents through a snapshot, and says what callers can ask about them. A stored file that does not parse is
//! our fault, never the caller's.

use std::{collections::BTreeMap, collections::BTreeSet, sync::Arc};

use thiserror::Error;

use crate::documents::history::{Agreement, EntryFacts, History, HistoryEntry};
use crate::documents::said::{EarlierObjections, ObjectionsFile, RebuildsFile};
use crate::documents::signatures::{OtherFormatsFile, SignatureSet};
use crate::documents::signed_request::{Registrant, Withdrawal};
use crate::documents::{layout, layout::Signable, signers::Metadata, signers::SignersFile};
use crate::rules::snapshot::{Change, ReadError, Snapshot, StoredSigners};
pub use crate::rules::snapshot::{corrupt, parse_stored};
use crate::{json_words, values::digest::Sha512, values::key::PublicKey, values::path::RepoPath};

/// A signers file in force, and the project that it governs.
#[derive(Debug, Clone)]
pub struct ActiveSigners {
    pub project: RepoPath,
    pub bytes: Arc<[u8]>,
    pub file: Arc<SignersFile>,
}

/// The nearest active signers file at or above `path`.
pub fn signers_in_force(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<ActiveSigners>, ReadError> {
    match snapshot.governing_project(path) {
        Some(project) => active_signers(snapshot, &project),
        None => Ok(None),
    }
}

/// The signers file that governs a stored release, which always has one.
pub fn require_signers_in_force(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<ActiveSigners, ReadError> {
    signers_in_force(snapshot, path)?.ok_or_else(|| ungoverned(path))
}

pub fn ungoverned(path: &RepoPath) -> ReadError {
    corrupt(path, "no signers file governs it")
}

pub fn active_signers(
    snapshot: &impl Snapshot,
    project: &RepoPath,
) -> Result<Option<ActiveSigners>, ReadError> {
    let stored = snapshot.read_signers(&layout::active_signers(project))?;
    Ok(stored.map(|StoredSigners { bytes, file, .. }| ActiveSigners {
        project: project.clone(),
        bytes,
        file,
    }))
}

/// How many entries the history of a project has. They are numbered without a gap.
pub fn history_len(snapshot: &impl Snapshot, project: &RepoPath) -> usize {
    let has = |number: usize| snapshot.contains(&layout::history_entry(project, number));
    // Most histories have a few entries, and none is asked for all of them.
    let mut beyond = 1;
    while has(beyond) {
        beyond *= 2;
    }
    let (mut known, mut beyond) = (beyond / 2, beyond);
    while beyond - known > 1 {
        let middle = known + (beyond - known) / 2;
        if has(middle) { known = middle } else { beyond = middle }
    }
    known
}

/// What is known of an entry that must be there, counted from 1.
pub fn entry_facts(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    number: usize,
) -> Result<EntryFacts, ReadError> {
    let path = layout::history_entry(project, number);
    snapshot.read_entry_facts(&path)?.ok_or_else(|| corrupt(&path, "it is missing"))
}

/// Reads what is known of the first `count` entries.
pub fn history_facts(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    count: usize,
) -> Result<Vec<EntryFacts>, ReadError> {
    (1..=count).map(|number| entry_facts(snapshot, project, number)).collect()
}

/// Reads these entries of a project's history, counted from 1.
pub fn history(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    numbers: impl IntoIterator<Item = usize>,
) -> Result<History, ReadError> {
    let entry = |number| {
        let path = layout::history_entry(project, number);
        parse_stored(&path, HistoryEntry::parse(&require(snapshot, &path)?))
    };
    Ok(History { entries: numbers.into_iter().map(entry).collect::<Result<_, _>>()? })
}

/// Whether something is served at `path`: a stored file, or a history that is assembled.
pub fn is_served(snapshot: &impl Snapshot, path: &RepoPath) -> bool {
    let first_entry = layout::project_of_history(path).map(|project| layout::history_entry(&project, 1));
    snapshot.contains(path) || first_entry.is_some_and(|entry| snapshot.contains(&entry))
}

/// How far a release has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "lowercase"))]
pub enum ReleaseState {
    /// The release waits for signatures.
    Collecting,
    /// All signatures that it needs are there.
    Complete,
    /// The release was complete, and its signers took it back.
    Revoked,
}

json_words!(ReleaseState {
    Collecting = "collecting", Complete = "complete", Revoked = "revoked",
} "must be collecting, complete or revoked");

/// The state of the index at `path`; `None` where there is no such file.
pub fn index_state(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<ReleaseState>, ReadError> {
    if !snapshot.contains(path) {
        return Ok(None);
    }
    let has = |signatures_of: fn(&RepoPath) -> RepoPath| snapshot.contains(&signatures_of(path));
    if has(layout::pending_signatures_of) {
        Ok(Some(ReleaseState::Collecting))
    } else if has(layout::signatures_of) {
        Ok(Some(ReleaseState::Complete))
    } else if has(layout::revoked_signatures_of) {
        Ok(Some(ReleaseState::Revoked))
    } else {
        Err(corrupt(path, "it has no signatures file"))
    }
}

/// The state of the index at `path` with the signatures on it; `None` where there is no such file.
pub fn index_signatures(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<(ReleaseState, SignatureSet)>, ReadError> {
    let Some(state) = index_state(snapshot, path)? else { return Ok(None) };
    let set = match state {
        ReleaseState::Collecting => collected_signatures(snapshot, path)?,
        ReleaseState::Complete => present_signatures(snapshot, &layout::signatures_of(path))?,
        ReleaseState::Revoked => present_signatures(snapshot, &layout::revoked_signatures_of(path))?,
    };
    Ok(Some((state, set)))
}

/// The signatures on a revocation that waits for more; empty where none does.
pub fn begun_signatures(snapshot: &impl Snapshot, index: &RepoPath) -> Result<SignatureSet, ReadError> {
    present_signatures(snapshot, &layout::pending_revocation_signatures_of(index))
}

/// The signatures in the file at `path`; empty where there is no such file.
pub fn present_signatures(snapshot: &impl Snapshot, path: &RepoPath) -> Result<SignatureSet, ReadError> {
    Ok(snapshot.read_signatures(path)?.unwrap_or_default())
}

/// The signatures on a release in other formats; empty where there are none.
pub fn other_formats(snapshot: &impl Snapshot, index: &RepoPath) -> Result<OtherFormatsFile, ReadError> {
    let file = snapshot.read_document(&layout::other_formats_of(index), OtherFormatsFile::parse)?;
    Ok(file.unwrap_or_default())
}

/// Deletes the signatures in other formats, which go where the signatures of the index go.
pub fn delete_other_formats(snapshot: &impl Snapshot, change: &mut Change, index: &RepoPath) {
    delete_present(snapshot, change, layout::other_formats_of(index));
}

/// Deletes a file that need not be there.
pub fn delete_present(snapshot: &impl Snapshot, change: &mut Change, path: RepoPath) {
    if snapshot.contains(&path) {
        change.delete(path);
    }
}

/// Who registered an index that collects signatures; `None` where no file says it.
pub fn registrant(snapshot: &impl Snapshot, index: &RepoPath) -> Result<Option<PublicKey>, ReadError> {
    let file = snapshot.read_document(&layout::registrant_of(index), Registrant::parse)?;
    Ok(file.map(|registrant| registrant.key))
}

/// What signers objected to; empty where no one has.
pub fn objections(snapshot: &impl Snapshot, index: &RepoPath) -> Result<ObjectionsFile, ReadError> {
    let file = snapshot.read_document(&layout::objections_of(index), ObjectionsFile::parse)?;
    Ok(file.unwrap_or_default())
}

/// What builders state; empty where none has.
pub fn rebuilds(snapshot: &impl Snapshot, index: &RepoPath) -> Result<RebuildsFile, ReadError> {
    let file = snapshot.read_document(&layout::rebuilds_of(index), RebuildsFile::parse)?;
    Ok(file.unwrap_or_default())
}

/// What signers objected to in contents that were here before; empty where no one has.
pub fn earlier_objections(
    snapshot: &impl Snapshot,
    index: &RepoPath,
) -> Result<EarlierObjections, ReadError> {
    let file = snapshot.read_document(&layout::earlier_objections_of(index), EarlierObjections::parse)?;
    Ok(file.unwrap_or_default())
}

/// Retires the objections to an index whose content goes. Those that stand are kept as what was said of an earlier
/// content (D224).
pub fn retire_objections(
    snapshot: &impl Snapshot,
    change: &mut Change,
    index: &RepoPath,
) -> Result<(), ReadError> {
    let objections = objections(snapshot, index)?;
    if !objections.standing().is_empty() {
        let mut earlier = earlier_objections(snapshot, index)?;
        earlier.retire(objections);
        change.write(layout::earlier_objections_of(index), earlier.write());
    }
    delete_present(snapshot, change, layout::objections_of(index));
    Ok(())
}

/// Who withdrew the release that was here, and why; `None` where none was, or another one is.
pub fn withdrawal(snapshot: &impl Snapshot, index: &RepoPath) -> Result<Option<Withdrawal>, ReadError> {
    snapshot.read_document(&layout::withdrawal_of(index), Withdrawal::parse)
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
        let Some(StoredSigners { bytes, file, .. }) = snapshot.read_signers(path)? else {
            return Ok(None);
        };
        let metadata_path = layout::metadata_of(path);
        let metadata_bytes = require(snapshot, &metadata_path)?;
        Ok(Some(Self {
            signers_bytes: bytes,
            signers: file,
            metadata: parse_stored(&metadata_path, Metadata::parse(&metadata_bytes))?,
            registration: require(snapshot, &layout::registration_of(path))?,
            signatures: collected_signatures(snapshot, path)?,
            metadata_signatures: collected_signatures(snapshot, &metadata_path)?,
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

    /// Who has signed the signers file, and who its metadata.
    pub fn signed(&self) -> [BTreeSet<PublicKey>; 2] {
        [&self.signatures, &self.metadata_signatures].map(SignatureSet::signers)
    }

    /// The digest that names the signers file.
    pub fn digest(&self) -> Sha512 {
        Sha512::of(&self.signers_bytes)
    }
}

/// Reads since when and until when the pending signers file at `path` waits, if it does.
pub fn agreement(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Agreement>, ReadError> {
    snapshot.read_document(&layout::agreement_of(path), Agreement::parse)
}

/// Deletes whatever lies below `dir`, unless the change writes it anew.
pub fn delete_below(snapshot: &impl Snapshot, change: &mut Change, dir: &RepoPath) -> Result<(), ReadError> {
    for path in snapshot.files_below(dir)? {
        change.files.entry(path).or_insert(None);
    }
    Ok(())
}

/// What a file that collects signatures has so far.
pub fn collected_signatures(snapshot: &impl Snapshot, file: &RepoPath) -> Result<SignatureSet, ReadError> {
    let path = layout::pending_signatures_of(file);
    snapshot.read_signatures(&path)?.ok_or_else(|| corrupt(&path, "it is missing"))
}

/// A file that must be there if the repository is whole.
pub fn require(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Arc<[u8]>, ReadError> {
    snapshot.read(path)?.ok_or_else(|| corrupt(path, "it is missing"))
}

// What may be asked about a file, and by whom (spec §4.4, §4.5, §4.7; D18).

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
            let state = index_state(snapshot, path)?.ok_or_else(not_found)?;
            let active = signers_in_force(snapshot, path)?;
            let active = active.ok_or_else(|| StatusRefusal::NoSigners(path.clone()))?;
            if !active.file.lists(caller) {
                return Err(not_a_signer());
            }
            Ok(state)
        }
        Signable::PendingSigners { project } => {
            let proposal = StoredProposal::load(snapshot, path)?.ok_or_else(not_found)?;
            let active = active_signers(snapshot, &project)?;
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
        let bytes = require(snapshot, &metadata)?;
        files.insert(metadata, bytes);
    }
    Ok(Some(files))
}
