//! The status map: what is complete, revoked and newest after each commit, as the changes alone say (D83).

use std::{collections::BTreeSet, collections::HashMap, sync::Arc};

use thiserror::Error;

use crate::log::record::{LoggedState, ProjectRecord, Record, ReleaseRecord, project_key, release_key};
use crate::log::{tree::Hash, trie::ShownLeaf, trie::Trie, trie::TrieKey, trie::TriePath};
use crate::values::{bounds::NEWEST_RELEASES, digest::Sha512, path::RepoPath};
use crate::{documents::layout, documents::layout::Signable, rules::snapshot::Change};

/// The map after one commit. A clone is a pointer, and versions share what they have in common.
#[derive(Debug, Clone, Default)]
pub struct Statuses {
    trie: Trie<Held>,
}

/// What the map must remember of a record to go on. There are many releases, so they are held without path and digest:
/// the one who asks for a record has both.
#[derive(Debug, Clone)]
enum Held {
    Release { number: u32, revocation: Option<Arc<Sha512>> },
    Project(Arc<ProjectRecord>),
}

/// What the map says of a completed release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedRelease {
    pub number: u32,
    pub state: LoggedState,
}

/// The records of a release and of its project, with their paths in the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusProof {
    pub release: ReleaseRecord,
    pub release_path: TriePath,
    pub project: ProjectRecord,
    pub project_path: TriePath,
}

/// A commit that no rules make. The log stops before it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the log cannot include a change of {path}: {fault}")]
pub struct StatusError {
    pub path: RepoPath,
    pub fault: StatusFault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StatusFault {
    #[error("its signers are new, but the history has no entry for them")]
    NoHistoryEntry,
    #[error("it is in no project that has active signers")]
    NoProject,
    #[error("its index is missing")]
    NoIndex,
    #[error("its index is not the one that was completed")]
    OtherIndex,
    #[error("it was completed before")]
    CompletedTwice,
    #[error("it was never completed, or it was revoked before")]
    NotComplete,
    #[error("its project has too many releases")]
    TooMany,
}

impl Statuses {
    /// The map of these records; of several with one key, the last counts.
    pub fn of_records(records: impl IntoIterator<Item = Record>) -> Self {
        let mut newest: HashMap<TrieKey, (Hash, Held)> = HashMap::new();
        for record in records {
            let (key, hash) = record.leaf();
            newest.insert(key, (hash, Held::of(&record)));
        }
        Self { trie: Trie::build(newest.into_iter().map(|(key, (hash, held))| (key, hash, held))) }
    }

    pub fn insert_record(&self, record: &Record) -> Self {
        let (key, hash) = record.leaf();
        Self { trie: self.trie.insert(key, hash, Held::of(record)) }
    }

    /// The map after a commit that makes `change`, with the records that are new in it. `read_index` reads an index as it
    /// is after the commit, or at any time later: a completed one never changes.
    pub fn apply(
        &self,
        change: &Change,
        read_index: impl Fn(&RepoPath) -> Option<Arc<[u8]>>,
    ) -> Result<(Self, Vec<Record>), StatusError> {
        self.apply_digests(change, |index| read_index(index).map(|bytes| Sha512::of(&bytes)))
    }

    /// Applies a change for a caller who knows only the digests of indexes.
    pub fn apply_digests(
        &self,
        change: &Change,
        digest_index: impl Fn(&RepoPath) -> Option<Sha512>,
    ) -> Result<(Self, Vec<Record>), StatusError> {
        let mut next = Derivation { change, digest_index, statuses: self.clone(), records: Vec::new() };
        // New signers come first: a project must be there before its releases.
        for (path, content) in written(change) {
            if let Some(project) = layout::project_of_active_signers(path) {
                next.rotate(project, Sha512::of(content))?;
            }
        }
        let indexes: BTreeSet<RepoPath> =
            written(change).filter_map(|(path, _)| index_behind(path)).collect();
        for index in indexes {
            let content = |path: &RepoPath| change.files.get(path).and_then(Option::as_deref);
            if content(&layout::signatures_of(&index)).is_some() {
                next.complete(&index)?;
            }
            if let Some(revocation) = content(&layout::revocation_of(&index)) {
                next.revoke(&index, Sha512::of(revocation))?;
            }
        }
        Ok((next.statuses, next.records))
    }

    pub fn root(&self) -> Hash {
        self.trie.root()
    }

    /// How many records the map has. Looks at each of them.
    pub fn count(&self) -> u64 {
        self.trie.count()
    }

    /// Whether the map has the record with this [leaf](Record::leaf), and not another one of its key.
    pub fn holds(&self, (key, hash): &(TrieKey, Hash)) -> bool {
        self.trie.holds(key, hash)
    }

    /// The part that these records and their paths show of the map with this root; `None` if one is of another map.
    pub fn of_paths(root: &Hash, shown: &[(Record, TriePath)]) -> Option<Self> {
        let leaves = shown.iter().map(|(record, path)| {
            let (key, hash) = record.leaf();
            ShownLeaf { key, hash, value: Held::of(record), path }
        });
        let trie = Trie::of_paths(root, &leaves.collect::<Vec<_>>())?;
        Some(Self { trie })
    }

    /// Whether it is certain what a change makes of the map. Only a part of one can leave it open.
    pub fn decides(&self, change: &Change) -> bool {
        consulted_keys(change).iter().all(|key| self.trie.decides(key))
    }

    /// The keys whose records, with their paths, make a part of the map that [decides](Statuses::decides) what a change
    /// makes of it. A key that is not there is proven by the record that stands where it would.
    pub fn decisive_paths(&self, change: &Change) -> Vec<(TrieKey, TriePath)> {
        let keys = consulted_keys(change);
        let keys: BTreeSet<TrieKey> = keys.iter().filter_map(|key| self.trie.decisive_key(key)).collect();
        keys.into_iter().filter_map(|key| Some((key, self.trie.prove(&key)?))).collect()
    }

    /// The release with this index; `None` if it was never completed.
    pub fn release(&self, index: &RepoPath) -> Option<LoggedRelease> {
        let Held::Release { number, revocation } = self.trie.get(&release_key(index))? else { return None };
        let state = match revocation {
            None => LoggedState::Complete,
            Some(digest) => LoggedState::Revoked(**digest),
        };
        Some(LoggedRelease { number: *number, state })
    }

    pub fn project(&self, path: &RepoPath) -> Option<&ProjectRecord> {
        match self.trie.get(&project_key(path))? {
            Held::Project(project) => Some(project),
            Held::Release { .. } => None,
        }
    }

    /// The nearest project above an index. Projects do not lie in each other (D35).
    pub fn project_of(&self, index: &RepoPath) -> Option<&ProjectRecord> {
        index.self_and_ancestors().find_map(|dir| self.project(&dir))
    }

    /// Proves the record of a release; `None` if no release with this index was completed.
    pub fn prove_release(&self, index: &RepoPath, digest: Sha512) -> Option<StatusProof> {
        let LoggedRelease { number, state } = self.release(index)?;
        let release = ReleaseRecord { path: index.clone(), number, index: digest, state };
        let (key, hash) = Record::Release(release.clone()).leaf();
        let release_path = self.trie.prove(&key).filter(|_| self.trie.holds(&key, &hash))?;
        let project = self.project_of(index)?;
        let project_path = self.trie.prove(&project_key(&project.path))?;
        Some(StatusProof { release, release_path, project: project.clone(), project_path })
    }
}

impl Held {
    fn of(record: &Record) -> Self {
        match record {
            Record::Release(ReleaseRecord { number, state, .. }) => Self::Release {
                number: *number,
                revocation: match state {
                    LoggedState::Complete => None,
                    LoggedState::Revoked(digest) => Some(Arc::new(*digest)),
                },
            },
            Record::Project(project) => Self::Project(Arc::new(project.clone())),
        }
    }
}

/// One commit on its way into the map.
struct Derivation<'a, D> {
    change: &'a Change,
    digest_index: D,
    statuses: Statuses,
    records: Vec<Record>,
}

impl<D: Fn(&RepoPath) -> Option<Sha512>> Derivation<'_, D> {
    fn rotate(&mut self, project: RepoPath, signers: Sha512) -> Result<(), StatusError> {
        let history = history_length(self.change, &project);
        let history = history.ok_or_else(|| StatusFault::NoHistoryEntry.of(&project))?;
        let before = self.statuses.project(&project);
        let record = ProjectRecord {
            completed: before.map_or(0, |before| before.completed),
            newest: before.map(|before| before.newest.clone()).unwrap_or_default(),
            path: project,
            signers,
            history,
        };
        self.put(Record::Project(record));
        Ok(())
    }

    fn complete(&mut self, index: &RepoPath) -> Result<(), StatusError> {
        if self.statuses.release(index).is_some() {
            return Err(StatusFault::CompletedTwice.of(index));
        }
        let project = self.statuses.project_of(index).ok_or_else(|| StatusFault::NoProject.of(index))?;
        let mut project = project.clone();
        project.completed = project.completed.checked_add(1).ok_or_else(|| StatusFault::TooMany.of(index))?;
        project.newest.truncate(NEWEST_RELEASES - 1);
        project.newest.insert(0, index.clone());
        let release = ReleaseRecord {
            path: index.clone(),
            number: project.completed,
            index: self.digest_index(index)?,
            state: LoggedState::Complete,
        };
        self.put(Record::Release(release));
        self.put(Record::Project(project));
        Ok(())
    }

    fn revoke(&mut self, index: &RepoPath, revocation: Sha512) -> Result<(), StatusError> {
        let completed = self.statuses.release(index);
        let Some(LoggedRelease { number, state: LoggedState::Complete }) = completed else {
            return Err(StatusFault::NotComplete.of(index));
        };
        let digest = self.digest_index(index)?;
        let release =
            ReleaseRecord { path: index.clone(), number, index: digest, state: LoggedState::Complete };
        let (key, hash) = Record::Release(release.clone()).leaf();
        if !self.statuses.trie.holds(&key, &hash) {
            return Err(StatusFault::OtherIndex.of(index));
        }
        self.put(Record::Release(ReleaseRecord { state: LoggedState::Revoked(revocation), ..release }));
        Ok(())
    }

    fn digest_index(&self, index: &RepoPath) -> Result<Sha512, StatusError> {
        let written = self.change.files.get(index).and_then(Option::as_deref).map(Sha512::of);
        written.or_else(|| (self.digest_index)(index)).ok_or_else(|| StatusFault::NoIndex.of(index))
    }

    fn put(&mut self, record: Record) {
        self.statuses = self.statuses.insert_record(&record);
        self.records.push(record);
    }
}

impl StatusFault {
    fn of(self, path: &RepoPath) -> StatusError {
        StatusError { path: path.clone(), fault: self }
    }
}

/// The indexes that a change completes, each with the signatures file that it writes for it.
pub fn completed_indexes(change: &Change) -> impl Iterator<Item = (RepoPath, &Arc<[u8]>)> {
    written(change).filter_map(|(path, content)| {
        let index = index_behind(path)?;
        (layout::signatures_of(&index) == *path).then_some((index, content))
    })
}

/// The files that a change writes, without those that it deletes.
fn written(change: &Change) -> impl Iterator<Item = (&RepoPath, &Arc<[u8]>)> {
    change.files.iter().filter_map(|(path, content)| Some((path, content.as_ref()?)))
}

/// All keys that [`Statuses::apply`] may look at or write.
fn consulted_keys(change: &Change) -> BTreeSet<TrieKey> {
    let mut keys = BTreeSet::new();
    for (path, _) in written(change) {
        keys.extend(layout::project_of_active_signers(path).map(|project| project_key(&project)));
        if let Some(index) = index_behind(path) {
            keys.insert(release_key(&index));
            keys.extend(index.self_and_ancestors().map(|dir| project_key(&dir)));
        }
    }
    keys
}

/// The index whose signatures, revocation and so on `path` belongs to.
fn index_behind(path: &RepoPath) -> Option<RepoPath> {
    layout::signable_behind(path).filter(|file| layout::signable(file) == Some(Signable::Index))
}

/// The length of the history, as the entry says that comes with new signers.
fn history_length(change: &Change, project: &RepoPath) -> Option<u32> {
    let numbers = written(change).filter_map(|(path, _)| layout::history_number(path, project));
    numbers.max().filter(|number| *number > 0)?.try_into().ok()
}
