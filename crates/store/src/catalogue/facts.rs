//! What the tables keep of a release and of a project, read from a head.

use std::collections::BTreeSet;

use countersign_api::catalogue::ReleaseState;
use countersign_core::{
    documents::{index::ReleaseIndex, layout, metadata::Metadata, signatures::SignatureSet},
    rules::{
        quorum::RevocationRole,
        snapshot::{ReadError, Snapshot},
        stored,
    },
    values::{key::PublicKey, path::RepoPath, time::Timestamp},
};

use gix::ObjectId;

use super::{DigestHasher, FileDigest, describe, reading::Reading};

/// Seconds since 1970: enough until 2106, and half the memory.
pub(super) type Seconds = u32;

pub(super) fn seconds(time: Timestamp) -> Seconds {
    Seconds::try_from(time.unix_seconds().max(0)).unwrap_or(Seconds::MAX)
}

pub(super) struct ReleaseFacts {
    /// The id of the index.
    pub(super) content: ObjectId,
    pub(super) project: RepoPath,
    pub(super) registered_at: Seconds,
    pub(super) state: ReleaseState,
    /// Of its files, once it is or was complete.
    pub(super) digests: Vec<u64>,
    pub(super) signed: Vec<(PublicKey, Seconds)>,
    pub(super) begun: Option<BegunFacts>,
}

/// A revocation that waits for more signatures.
pub(super) struct BegunFacts {
    pub(super) since: Seconds,
    /// Those who have nothing more to do. None if there are enough signatures: then anyone can carry it out.
    pub(super) joined: Vec<PublicKey>,
}

impl ReleaseFacts {
    /// `None` if there is no index at `path`. One that cannot be read is left out, so that all others are found.
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
        let Some(content) = reading.id_of(path) else { return Ok(None) };
        let Some((state, set)) = describe::read_state(reading, path)? else { return Ok(None) };
        let index = stored::parse_stored(path, ReleaseIndex::parse(&stored::require(reading, path)?))?;
        let (digests, begun) = match state {
            ReleaseState::Collecting => (Vec::new(), None),
            ReleaseState::Complete => (hash_digests(&index, hasher), read_begun(reading, path)?),
            ReleaseState::Revoked => (hash_digests(&index, hasher), None),
        };
        Ok(Some(Self {
            content,
            project: index.project_id,
            registered_at: seconds(index.mirrored_on),
            state,
            digests,
            signed: set.iter().map(|(key, collected)| (*key, seconds(collected.collected_at))).collect(),
            begun,
        }))
    }
}

fn hash_digests(index: &ReleaseIndex, hasher: &DigestHasher) -> Vec<u64> {
    let of = |digest: FileDigest| hasher.hash(&digest);
    let files = index.published_files.iter().flat_map(|file| {
        let sha256 = file.digests.sha256.map(|digest| of(FileDigest::Sha256(digest)));
        sha256.into_iter().chain(file.digests.sha512.map(|digest| of(FileDigest::Sha512(digest))))
    });
    files.collect()
}

fn read_begun(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<BegunFacts>, ReadError> {
    if !snapshot.contains(&layout::pending_revocation_of(path)) {
        return Ok(None);
    }
    let set = describe::begun_signatures(snapshot, path)?;
    let active = stored::governing_signers(snapshot, path)?;
    let is_met = active.is_some_and(|active| RevocationRole::of(&active.file).is_met(&set.signers()));
    let joined = if is_met { Vec::new() } else { set.signers().into_iter().collect() };
    Ok(Some(BegunFacts { since: first_signed(&set).map(seconds).unwrap_or_default(), joined }))
}

pub(super) fn first_signed(set: &SignatureSet) -> Option<Timestamp> {
    set.iter().map(|(_, collected)| collected.collected_at).min()
}

#[derive(Default)]
pub(super) struct ProjectFacts {
    /// Whether a signers file is in force.
    pub(super) is_active: bool,
    /// Every key that it lists.
    pub(super) listed: BTreeSet<PublicKey>,
    /// When the pending signers file was fetched, if there is one.
    pub(super) proposed_at: Option<Seconds>,
}

impl ProjectFacts {
    pub(super) fn gather(snapshot: &impl Snapshot, project: &RepoPath) -> Self {
        Self::read(snapshot, project).unwrap_or_else(|error| {
            tracing::warn!(%error, "a project is left out of the catalogue");
            Self::default()
        })
    }

    fn read(snapshot: &impl Snapshot, project: &RepoPath) -> Result<Self, ReadError> {
        let active = stored::active_signers(snapshot, project)?;
        let metadata_path = layout::metadata_of(&layout::pending_signers(project));
        let metadata = snapshot.read(&metadata_path)?;
        let metadata = metadata.map(|bytes| stored::parse_stored(&metadata_path, Metadata::parse(&bytes)));
        Ok(Self {
            is_active: active.is_some(),
            listed: active.map(|active| active.file.keys()).unwrap_or_default(),
            proposed_at: metadata.transpose()?.map(|metadata| seconds(metadata.origin.retrieved_at)),
        })
    }
}
