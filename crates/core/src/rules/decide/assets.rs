//! Registering the files of a release (spec §4.10; D11, D16, D23, D36, D105).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use thiserror::Error;

use crate::documents::index::{IndexTooLarge, PublishedFile, ReleaseIndex};
use crate::documents::{layout, signatures::SignatureSet, signed_request::Registrant};
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::{snapshot, stored, stored::ActiveSigners, stored::ReleaseState};
use crate::values::{bounds::COLLECTING_BYTES, key::PublicKey, path::RepoPath, time::Timestamp, wire};

/// A release as its source describes it.
#[derive(Debug, Clone)]
pub struct Release {
    /// The directory that the index is for.
    pub dir: RepoPath,
    pub release_url: Option<String>,
    pub published_on: Option<Timestamp>,
    /// The files, sorted by name, one entry each.
    pub published_files: Vec<PublishedFile>,
}

/// The index of a release as it will be stored, within the bounds (D41). It is made before anything waits for the writer:
/// to write many names takes time.
#[derive(Debug, Clone)]
pub struct WrittenIndex {
    dir: RepoPath,
    index: ReleaseIndex,
    bytes: Arc<[u8]>,
}

/// An index keeps the time at which it was written if its change is made within this time: to write a large one takes
/// milliseconds, and only one thread decides.
const MAX_INDEX_WAIT: Duration = Duration::from_secs(60);

impl WrittenIndex {
    /// Whether the time in the index can stand for that of its change (D191).
    pub fn is_of(&self, now: Timestamp) -> bool {
        now >= self.index.mirrored_on
            && now.ahead_of(self.index.mirrored_on).is_none_or(|wait| wait <= MAX_INDEX_WAIT)
    }
}

impl Release {
    /// The index that `project` would have of this release.
    pub fn write_index(&self, project: &RepoPath, now: Timestamp) -> Result<WrittenIndex, IndexTooLarge> {
        let index = ReleaseIndex {
            project_id: project.clone(),
            release_url: self.release_url.clone(),
            mirrored_on: now.to_whole_seconds(),
            published_on: self.published_on,
            published_files: self.published_files.clone(),
        };
        let bytes = index.write_bounded()?.into();
        Ok(WrittenIndex { dir: self.dir.clone(), index, bytes })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AssetsRefusal {
    #[error("No signers file found for: {0}. Register the project first with POST /v1/register_repo")]
    NoSigners(RepoPath),
    #[error("the key {key} is no signer in the current signers file of {project}")]
    NotASigner { key: PublicKey, project: RepoPath },
    #[error("Release already registered: {0}. A directory holds one release: use one per version")]
    AlreadyRegistered(RepoPath),
    #[error(
        "the key {key} is a registrar of {project}, which registers new releases only. {index} collects signatures, with \
         other files. A signer of the project can register it again, and its signatures are then dropped"
    )]
    RegistrarCannotCorrect { key: PublicKey, project: RepoPath, index: RepoPath },
    #[error("{project} has {limit} releases that still wait for signatures: sign some of them first")]
    TooManyCollecting { project: RepoPath, limit: usize },
    #[error(
        "{project} has {waiting} releases that still wait for signatures, with paths so long that one more would leave no \
         room to change the project's signers: sign or withdraw some of them first"
    )]
    NoRoomToRotate { project: RepoPath, waiting: usize },
    #[error(transparent)]
    Stored(#[from] ReadError),
}

/// Whether this key may register a release in this directory now: asked before anything is fetched.
pub fn check_assets(
    snapshot: &impl Snapshot,
    dir: &RepoPath,
    caller: &PublicKey,
) -> Result<ActiveSigners, AssetsRefusal> {
    let active = stored::signers_in_force(snapshot, dir)?;
    let active = active.ok_or_else(|| AssetsRefusal::NoSigners(dir.clone()))?;
    if !active.file.may_register(caller) {
        return Err(AssetsRefusal::NotASigner { key: *caller, project: active.project });
    }
    let index = layout::index_in(dir);
    match stored::index_state(snapshot, &index)? {
        Some(ReleaseState::Complete | ReleaseState::Revoked) => Err(AssetsRefusal::AlreadyRegistered(index)),
        Some(ReleaseState::Collecting) | None => Ok(active),
    }
}

/// A release that waits for signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredAssets {
    pub index: RepoPath,
    /// The keys whose signatures on the index before this one are gone; `None` if there was no such index (D36).
    pub replaced: Option<BTreeSet<PublicKey>>,
}

/// How many releases of a project may wait for signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectingLimits {
    /// How many releases can collect: the operator's figure.
    releases: usize,
    /// The bytes that a rotation changes for them, each in the journal and in directories (D202).
    bytes: usize,
}

impl CollectingLimits {
    /// No limits: earlier versions had others, and what they stored stays legal.
    pub const NONE: Self = Self { releases: usize::MAX, bytes: usize::MAX };

    /// Whether there is room for one more release of this project.
    fn check(
        &self,
        snapshot: &impl Snapshot,
        project: &RepoPath,
        new: &RepoPath,
    ) -> Result<(), AssetsRefusal> {
        let collecting = snapshot.collecting_indexes(project);
        if collecting.len() >= self.releases {
            return Err(AssetsRefusal::TooManyCollecting { project: project.clone(), limit: self.releases });
        }
        let costs = collecting.iter().chain([new]).map(|index| RotationCost::of(index, project));
        let cost = costs.fold(RotationCost::default(), RotationCost::add);
        if cost.journal.max(cost.directories) > self.bytes {
            return Err(AssetsRefusal::NoRoomToRotate {
                project: project.clone(),
                waiting: collecting.len(),
            });
        }
        Ok(())
    }
}

impl From<usize> for CollectingLimits {
    fn from(releases: usize) -> Self {
        Self { releases, bytes: COLLECTING_BYTES }
    }
}

/// What new signers change for releases that collect signatures (D16): bytes in the journal, and bytes of directories.
#[derive(Debug, Clone, Copy, Default)]
struct RotationCost {
    journal: usize,
    directories: usize,
}

impl RotationCost {
    /// Files of a release that a rotation writes or removes: the copy of the signers file, the signatures, and those in other
    /// formats.
    const FILES: usize = 3;
    /// The longest ending of their names behind that of the index.
    const ENDING: usize = wire::SIGNATURES_SUFFIX.len() + wire::PENDING_SUFFIX.len();
    /// A line of the journal has a mode, an id and two spaces around the path.
    const LINE: usize = "M 100644  \n".len() + 40;
    /// An entry of a directory has a mode, a NUL and an id. Each directory is an object of a pack, with its header and its
    /// place in the index.
    const DIRECTORY: usize = 27 + 64;
    /// The release's own directory lists up to eight files while it collects.
    const LISTED: usize = 8 * (27 + wire::INDEX_FILE.len() + Self::ENDING);

    fn of(index: &RepoPath, project: &RepoPath) -> Self {
        let path = index.as_str().len();
        let below = index.below(project).map_or(path, str::len);
        let depth = index.below(project).unwrap_or(index.as_str()).split('/').count();
        Self {
            journal: Self::FILES * (path + Self::ENDING + Self::LINE),
            directories: below + depth * Self::DIRECTORY + Self::LISTED,
        }
    }

    fn add(self, other: Self) -> Self {
        Self { journal: self.journal + other.journal, directories: self.directories + other.directories }
    }
}

pub fn register_assets(
    snapshot: &impl Snapshot,
    WrittenIndex { dir, index, bytes }: &WrittenIndex,
    caller: &PublicKey,
    limits: impl Into<CollectingLimits>,
) -> Result<(Change, RegisteredAssets), AssetsRefusal> {
    let active = check_assets(snapshot, dir, caller)?;
    if active.project != index.project_id {
        return Err(AssetsRefusal::NoSigners(index.project_id.clone()));
    }
    let path = layout::index_in(dir);
    let existing = snapshot.read(&path)?;
    let title = match &existing {
        Some(bytes) => {
            let existing = stored::parse_stored(&path, ReleaseIndex::parse(bytes))?;
            if existing.published_files == index.published_files {
                return Err(AssetsRefusal::AlreadyRegistered(path));
            }
            // Signatures would be dropped, so only a signer decides this (D36).
            if !active.file.has_signer(caller) {
                let project = active.project;
                return Err(AssetsRefusal::RegistrarCannotCorrect { key: *caller, project, index: path });
            }
            snapshot::CORRECT
        }
        None => {
            limits.into().check(snapshot, &active.project, &path)?;
            snapshot::ADD
        }
    };
    let replaced = match existing {
        Some(_) => Some(stored::collected_signatures(snapshot, &path)?.signers()),
        None => None,
    };
    let count = index.published_files.len();
    let mut change = Change::new(snapshot::message(title, &path, caller) + &format!("Files: {count}\n"));
    change.write(layout::signers_copy_of(&path), active.bytes);
    change.write(layout::pending_signatures_of(&path), SignatureSet::default().write());
    change.write(path.clone(), Arc::clone(bytes));
    change.write(layout::registrant_of(&path), Registrant { key: *caller }.write());
    stored::delete_other_formats(snapshot, &mut change, &path);
    stored::retire_objections(snapshot, &mut change, &path)?;
    stored::delete_present(snapshot, &mut change, layout::rebuilds_of(&path));
    stored::delete_present(snapshot, &mut change, layout::withdrawal_of(&path));
    Ok((change, RegisteredAssets { index: path, replaced }))
}
