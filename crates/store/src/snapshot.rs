//! The repository at one commit, as decisions and readers see it: its files, and the index that is made from them.

pub mod index;
pub mod path_table;
pub mod tree;
pub mod trie;

use std::sync::Arc;

use bytes::Bytes;
use countersign_core::documents::{history::EntryFacts, layout, signatures::SignatureSet};
use countersign_core::rules::{snapshot::ReadError, snapshot::Snapshot, snapshot::StoredSigners, stored};
use countersign_core::values::{path::RepoPath, time::Timestamp, wire};
use gix::ObjectId;

use crate::snapshot::index::{Index, might_matter};
use crate::snapshot::tree::{Dir, TreeNode, addressable};
use crate::snapshot::{path_table::Far, path_table::PathTable, trie::TableEntry};
use crate::{error::StoreError, objects::Objects, objects::spot::Spot};

/// One commit. Never changes; cheap to clone.
#[derive(Debug, Clone)]
pub struct Head {
    /// The zero id before the first commit.
    pub commit: ObjectId,
    /// The root directory. Two heads with the same files have equal ones.
    pub root: Arc<Dir>,
    /// The files by path, for a server; a check that goes through many commits does without.
    pub(crate) paths: Option<PathTable>,
    pub(crate) objects: Arc<Objects>,
    pub index: Index,
}

/// A file of one commit.
#[derive(Debug, Clone, Copy)]
pub struct FoundFile<'a> {
    pub id: ObjectId,
    spot: Option<&'a Spot>,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathEntry {
    File(ObjectId),
    Directory,
}

impl Head {
    /// Makes a head to begin with.
    pub(crate) fn of(
        commit: ObjectId,
        root: Arc<Dir>,
        paths: Option<PathTable>,
        objects: Arc<Objects>,
    ) -> Self {
        Self { commit, root, paths, objects, index: Index::default() }.rebuild_index()
    }

    /// The commit that has the tree `root`, and differs from this one in the files `touched`.
    pub(crate) fn next(&self, commit: ObjectId, root: Arc<Dir>, touched: &[RepoPath]) -> Self {
        let mut next = Self { commit, root, ..self.clone() };
        if let Some(paths) = &mut next.paths {
            for path in touched {
                paths.set(path.as_str(), next.root.file(path));
            }
        }
        next.update_index(touched);
        next
    }

    /// Builds the index again, from the files alone.
    pub fn rebuild_index(mut self) -> Self {
        self.index = Index::default();
        let mut touched = Vec::new();
        self.walk(&mut |path, _| {
            if might_matter(path) {
                touched.extend(addressable(path));
            }
        });
        self.update_index(&touched);
        self
    }

    fn update_index(&mut self, touched: &[RepoPath]) {
        let mut index = std::mem::take(&mut self.index);
        index.update(self, touched);
        self.index = index;
    }

    /// The commit; `None` before the first one.
    pub fn tip(&self) -> Option<ObjectId> {
        Some(self.commit).filter(|commit| !commit.is_null())
    }

    /// Reads the time of the commit from disk.
    pub fn committed_at(&self) -> Result<Timestamp, StoreError> {
        Ok(self.objects.commit(self.commit)?.time)
    }

    pub fn entry(&self, path: &RepoPath) -> Option<PathEntry> {
        if let Some(found) = self.file(path) {
            return Some(PathEntry::File(found.id));
        }
        self.root.find(path)?.dir().map(|_| PathEntry::Directory)
    }

    /// The file at `path`; `None` if nothing or a directory is there.
    pub fn file(&self, path: &RepoPath) -> Option<FoundFile<'_>> {
        match &self.paths {
            Some(paths) => paths.find(path.as_str()).map(FoundFile::at),
            None => self.root.file(path).map(|id| FoundFile { id, spot: None }),
        }
    }

    /// The nearest active signers file at or above `path`.
    pub fn nearest_signers(&self, path: &RepoPath) -> Option<FoundFile<'_>> {
        match self.paths.as_ref().map_or(Err(Far), |paths| paths.find_nearest_signers(path)) {
            Ok(entry) => entry.map(FoundFile::at),
            Err(Far) => {
                let id = self.root.find_nearest(path, [wire::ACTIVE_DIR, wire::SIGNERS_FILE])?;
                Some(FoundFile { id, spot: None })
            }
        }
    }

    /// The content of what was found at this commit.
    pub fn content(&self, found: FoundFile<'_>) -> Result<Bytes, StoreError> {
        self.objects.content(&found.id, found.spot)
    }

    /// The content of what was found, if it costs no more than a look: it lies in a pack as it is, or is in the cache
    /// and small.
    pub fn cached_content(&self, found: FoundFile<'_>, most: usize) -> Option<Bytes> {
        self.objects.cached_content(&found.id, found.spot, most)
    }

    /// The state of a project's signers history, which names exactly its entries; `None` where it has none.
    pub fn history_id(&self, project: &RepoPath) -> Option<ObjectId> {
        self.root.find(&layout::history_dir(project))?.dir().map(|dir| dir.id)
    }

    /// The signers file at `path`, where it was parsed before; else what has to be parsed.
    pub fn known_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, FoundFile<'_>> {
        let Some(found) = self.file(path) else { return Ok(None) };
        self.objects.parsed.signers.get(&found.id).map(Some).ok_or(found)
    }

    /// The facts about the entry of a history at `path`, if it was parsed before; else what has to be parsed.
    pub fn known_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, FoundFile<'_>> {
        let Some(found) = self.file(path) else { return Ok(None) };
        self.objects.parsed.entry_facts.get(&found.id).map(Some).ok_or(found)
    }

    /// Calls `visit` with the path of every file below `dir`, sorted. That includes paths which no request can spell.
    pub fn walk_below(&self, dir: &RepoPath, visit: &mut dyn FnMut(&str)) {
        if let Some(TreeNode::Dir(_, below)) = self.root.find(dir) {
            below.walk(&mut format!("{dir}/"), &mut |path, _| visit(path));
        }
    }

    /// Calls `visit` with the path and the blob id of every file, sorted by path.
    pub fn walk(&self, visit: &mut dyn FnMut(&str, ObjectId)) {
        self.root.walk(&mut String::new(), visit);
    }

    fn blob(&self, path: &RepoPath, found: FoundFile<'_>) -> Result<Arc<[u8]>, ReadError> {
        let blob = self.objects.blob_at(&found.id, found.spot);
        blob.map_err(|error| {
            if self.objects.verifies {
                // A check is there to say what is wrong with an object.
                return ReadError { path: path.clone(), reason: error.reason() };
            }
            unreadable(path, &error)
        })
    }
}

impl Snapshot for Head {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        self.file(path).map(|found| self.blob(path, found)).transpose()
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.file(path).is_some()
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        let found = match self.known_signers(path) {
            Ok(known) => return Ok(known),
            Err(found) => found,
        };
        let signers = StoredSigners::parse(path, self.blob(path, found)?)?;
        self.objects.parsed.signers.insert(found.id, signers.clone());
        Ok(Some(signers))
    }

    fn read_signatures(&self, path: &RepoPath) -> Result<Option<SignatureSet>, ReadError> {
        let Some(found) = self.file(path) else { return Ok(None) };
        if let Some(known) = self.objects.parsed.signatures.get(&found.id) {
            return Ok(Some(SignatureSet::clone(&known)));
        }
        let set = stored::parse_stored(path, SignatureSet::parse(&self.blob(path, found)?))?;
        self.objects.parsed.signatures.insert(found.id, Arc::new(set.clone()));
        Ok(Some(set))
    }

    fn governing_project(&self, path: &RepoPath) -> Option<RepoPath> {
        let near = self.paths.as_ref().map_or(Err(Far), |paths| paths.find_nearest_project(path));
        near.unwrap_or_else(|Far| {
            path.self_and_ancestors().find(|dir| self.contains(&layout::active_signers(dir)))
        })
    }

    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        let found = match self.known_entry_facts(path) {
            Ok(known) => return Ok(known),
            Err(found) => found,
        };
        let facts = stored::parse_stored(path, EntryFacts::parse(&self.blob(path, found)?))?;
        self.objects.parsed.entry_facts.insert(found.id, facts);
        Ok(Some(facts))
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        let mut files = Vec::new();
        self.walk_below(dir, &mut |path| files.extend(addressable(path)));
        Ok(files)
    }

    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        self.index.projects_overlapping(id)
    }

    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        self.index.pending_registrations(dir)
    }

    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        self.index.collecting_indexes(project)
    }
}

impl<'a> FoundFile<'a> {
    fn at(entry: &'a TableEntry) -> Self {
        Self { id: entry.id, spot: Some(&entry.spot) }
    }
}

/// The error for callers, which names the file alone. Where on disk it is missing is for the log.
pub fn unreadable(path: &RepoPath, error: &StoreError) -> ReadError {
    tracing::error!(%path, %error, "a stored file cannot be read");
    ReadError { path: path.clone(), reason: "it cannot be read from the repository".to_owned() }
}
