//! What the tables keep of a release and of a project, read from a head.

use std::hash::{BuildHasher as _, RandomState};
use std::{borrow::Cow, cell::Cell, collections::BTreeSet, sync::Arc};

use countersign_api::catalogue::ReleaseState;
use countersign_core::documents::history::{EntryFacts, HistoryEntry};
use countersign_core::documents::signers::{Metadata, SignersFile};
use countersign_core::documents::{index::ReleaseIndex, layout, signatures::SignatureSet};
use countersign_core::rules::snapshot::{ReadError, Snapshot, StoredSigners};
use countersign_core::rules::{quorum, reproduction::Reproduction, stored};
use countersign_core::values::digest::{HexDigest, Sha256, Sha512};
use countersign_core::values::{bounds::FILE_BYTES, key::PublicKey, path::RepoPath, time::Timestamp, wire};
use countersign_explain::reproduction::list_asked;
use gix::objs::Kind;
use serde::Deserialize;
use smol_str::SmolStr;

use crate::snapshot::{Head, unreadable};

/// Seconds since 1970: enough until 2106, and half the memory.
pub(super) type Seconds = u32;

pub(super) fn seconds(time: Timestamp) -> Seconds {
    Seconds::try_from(time.unix_seconds().max(0)).unwrap_or(Seconds::MAX)
}

pub(super) struct ReleaseFacts {
    pub(super) project: RepoPath,
    /// The path without the project before it and the name of the index behind it.
    pub(super) tail: SmolStr,
    pub(super) registered_at: Seconds,
    pub(super) state: ReleaseState,
    /// Hashes of the digests of its files, once it is or was complete.
    pub(super) digests: Vec<u64>,
    pub(super) signed: Vec<(PublicKey, Seconds)>,
    /// Who signed the revocation in force.
    pub(super) revoked_by: Vec<(PublicKey, Seconds)>,
    pub(super) begun: Option<BegunFacts>,
    /// The builders who are asked to build it.
    pub(super) unbuilt: Vec<PublicKey>,
}

/// A revocation that waits for more signatures.
pub(super) struct BegunFacts {
    pub(super) since: Seconds,
    /// Keys that have nothing more to do. It is empty if there are enough signatures: then anyone can carry it out.
    pub(super) joined: Vec<PublicKey>,
}

impl ReleaseFacts {
    /// Reads the facts about the release whose index is at `path`; `None` if there is no index. One that cannot be read
    /// is left out, so that all others are found.
    pub(super) fn gather(reading: &Reading<'_>, path: &RepoPath, hasher: &DigestHasher) -> Option<Self> {
        let facts = Self::read(reading, path, hasher);
        facts.unwrap_or_else(|error| {
            tracing::warn!(%error, "a release is left out of the catalogue");
            None
        })
    }

    fn read(
        reading: &Reading<'_>,
        path: &RepoPath,
        hasher: &DigestHasher,
    ) -> Result<Option<Self>, ReadError> {
        let Some((state, set)) = stored::index_signatures(reading, path)? else { return Ok(None) };
        let bytes = stored::require(reading, path)?;
        let unusable = |reason: &dyn std::fmt::Display| stored::corrupt(path, reason.to_string());
        let index: IndexFacts<'_> = serde_json::from_slice(&bytes).map_err(|error| unusable(&error))?;
        let project = RepoPath::parse(&index.project_id).map_err(|error| unusable(&error))?;
        let tail = path.as_str().strip_prefix(project.as_str());
        let tail = tail.and_then(|tail| tail.strip_suffix(wire::INDEX_FILE));
        let tail =
            tail.filter(|tail| tail.starts_with('/')).ok_or_else(|| unusable(&"its project is elsewhere"))?;
        let registered_at = Timestamp::parse(&index.mirrored_on).map_err(|error| unusable(&error))?;
        let revoked_by = match state {
            ReleaseState::Collecting | ReleaseState::Complete => Vec::new(),
            ReleaseState::Revoked => {
                let path = layout::signatures_of(&layout::revocation_of(path));
                list_times(&stored::present_signatures(reading, &path)?)
            }
        };
        let (digests, begun) = match state {
            ReleaseState::Collecting => (Vec::new(), None),
            ReleaseState::Complete => (hash_digests(&index, hasher), read_begun(reading, path)?),
            ReleaseState::Revoked => (hash_digests(&index, hasher), None),
        };
        let unbuilt = match state {
            ReleaseState::Collecting | ReleaseState::Complete => list_unbuilt(reading, path)?,
            ReleaseState::Revoked => Vec::new(),
        };
        Ok(Some(Self {
            project,
            tail: tail.into(),
            registered_at: seconds(registered_at),
            state,
            digests,
            signed: list_times(&set),
            revoked_by,
            begun,
            unbuilt,
        }))
    }
}

/// The builders who are asked. Those of the release's own signers file can state something of it, and no others (D260).
fn list_unbuilt(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Vec<PublicKey>, ReadError> {
    let signers = stored::signers_copy(snapshot, path)?.file;
    let Some(policy) = signers.rebuilds() else { return Ok(Vec::new()) };
    let index = stored::parse_stored(path, ReleaseIndex::parse(&stored::require(snapshot, path)?))?;
    let found = Reproduction::judge(&index, policy, &stored::rebuilds(snapshot, path)?);
    Ok(list_asked(&found).into_iter().collect())
}

fn list_times(set: &SignatureSet) -> Vec<(PublicKey, Seconds)> {
    set.entries.iter().map(|(key, collected)| (*key, seconds(collected.collected_at))).collect()
}

/// What the tables keep of an index. After a start there are hundreds of thousands to read, and the strict reader takes
/// several times as long. It reads what an answer says.
#[derive(Deserialize)]
struct IndexFacts<'a> {
    #[serde(borrow)]
    project_id: Cow<'a, str>,
    #[serde(borrow)]
    mirrored_on: Cow<'a, str>,
    #[serde(borrow)]
    published_files: Vec<FileFacts<'a>>,
}

#[derive(Deserialize)]
struct FileFacts<'a> {
    #[serde(borrow)]
    digests: DigestFacts<'a>,
}

#[derive(Deserialize)]
struct DigestFacts<'a> {
    sha256: Option<&'a str>,
    sha512: Option<&'a str>,
}

fn hash_digests(index: &IndexFacts<'_>, hasher: &DigestHasher) -> Vec<u64> {
    let files = index.published_files.iter().flat_map(|file| {
        let sha256 = file.digests.sha256.and_then(HexDigest::parse).map(FileDigest::Sha256);
        sha256.into_iter().chain(file.digests.sha512.and_then(HexDigest::parse).map(FileDigest::Sha512))
    });
    files.map(|digest| hasher.hash(&digest)).collect()
}

fn read_begun(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<BegunFacts>, ReadError> {
    if !snapshot.contains(&layout::pending_revocation_of(path)) {
        return Ok(None);
    }
    let set = stored::begun_signatures(snapshot, path)?;
    let active = stored::signers_in_force(snapshot, path)?;
    let is_met =
        active.is_some_and(|active| quorum::is_met(&active.file.revocation_groups(), &set.signers()));
    let joined = if is_met { Vec::new() } else { set.signers().into_iter().collect() };
    Ok(Some(BegunFacts { since: set.first_signed().map(seconds).unwrap_or_default(), joined }))
}

#[derive(Default)]
pub(super) struct ProjectFacts {
    /// Whether a signers file is in force.
    pub(super) is_active: bool,
    /// Every key that it lists, registrars included.
    pub(super) listed: BTreeSet<PublicKey>,
    /// How many signers files have been in force.
    pub(super) history_len: usize,
    /// Who signed those that the tables did not know yet.
    pub(super) rotated_by: Vec<(PublicKey, Seconds)>,
    /// The time at which the pending signers file was fetched, if there is one.
    pub(super) proposed_at: Option<Seconds>,
}

impl ProjectFacts {
    /// Reads the facts about a project. `known` is how many entries of the history the tables know. Entries never
    /// change (D42), so each is read once.
    pub(super) fn gather(snapshot: &impl Snapshot, project: &RepoPath, known: usize) -> Self {
        Self::read(snapshot, project, known).unwrap_or_else(|error| {
            tracing::warn!(%error, "a project is left out of the catalogue");
            Self::default()
        })
    }

    fn read(snapshot: &impl Snapshot, project: &RepoPath, known: usize) -> Result<Self, ReadError> {
        let history_len = stored::history_len(snapshot, project);
        let mut rotated_by = Vec::new();
        for number in known + 1..history_len {
            let path = layout::history_entry(project, number);
            let entry = HistoryEntry::parse(&stored::require(snapshot, &path)?);
            rotated_by.extend(list_times(&stored::parse_stored(&path, entry)?.signatures));
        }
        if known < history_len {
            // The last one is in force: its signatures lie in a small file, and most projects have no other.
            let path = layout::signatures_of(&layout::active_signers(project));
            rotated_by.extend(list_times(&stored::present_signatures(snapshot, &path)?));
        }
        let active = stored::active_signers(snapshot, project)?;
        let metadata_path = layout::metadata_of(&layout::pending_signers(project));
        let metadata = snapshot.read(&metadata_path)?;
        let metadata = metadata.map(|bytes| stored::parse_stored(&metadata_path, Metadata::parse(&bytes)));
        Ok(Self {
            is_active: active.is_some(),
            listed: active.map(|active| list_everyone(&active.file)).unwrap_or_default(),
            history_len,
            rotated_by,
            proposed_at: metadata.transpose()?.map(|metadata| seconds(metadata.origin.retrieved_at)),
        })
    }
}

fn list_everyone(file: &SignersFile) -> BTreeSet<PublicKey> {
    file.keys().into_iter().chain(file.registrars().iter().map(|registrar| registrar.key)).collect()
}

// Digests as the tables know them.

/// A digest of a published file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileDigest {
    Sha256(Sha256),
    Sha512(Sha512),
}

/// Hashes digests with a key: a checksums file can name any digests, so strangers could make up many that begin alike.
#[derive(Clone, Default)]
pub(crate) struct DigestHasher(RandomState);

impl DigestHasher {
    pub(super) fn hash(&self, digest: &FileDigest) -> u64 {
        self.0.hash_one(digest)
    }
}

// A head whose files are read past the cache, and counted: a list must not read without bound, nor push out of the
// cache what others read all the time.

pub(super) struct Reading<'a> {
    head: &'a Head,
    bytes: Cell<usize>,
}

impl<'a> Reading<'a> {
    pub(super) fn of(head: &'a Head) -> Self {
        Self { head, bytes: Cell::new(0) }
    }

    /// How many bytes were read so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }
}

impl Snapshot for Reading<'_> {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        let Some(found) = self.head.file(path) else { return Ok(None) };
        let content: Arc<[u8]> = match self.head.cached_content(found, FILE_BYTES) {
            Some(content) => Arc::from(&content[..]),
            None => {
                let read = self.head.objects.read(&found.id, Kind::Blob);
                read.map_err(|error| unreadable(path, &error))?.into()
            }
        };
        self.bytes.set(self.bytes.get() + content.len());
        Ok(Some(content))
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.head.contains(path)
    }

    /// Reads a signers file through the cache: the copies of one project are all the same.
    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        if let Ok(known) = self.head.known_signers(path) {
            return Ok(known);
        }
        let read = self.head.read_signers(path)?;
        self.bytes.set(self.bytes.get() + read.as_ref().map_or(0, |signers| signers.bytes.len()));
        Ok(read)
    }

    fn governing_project(&self, path: &RepoPath) -> Option<RepoPath> {
        self.head.governing_project(path)
    }

    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        self.head.read_entry_facts(path)
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        self.head.files_below(dir)
    }

    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        self.head.projects_overlapping(id)
    }

    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        self.head.pending_registrations(dir)
    }

    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        self.head.collecting_indexes(project)
    }
}
