//! One commit: its files, and the index that is made from them.

use std::sync::Arc;

use bytes::Bytes;
use countersign_core::{
    documents::{history::EntryFacts, layout},
    rules::snapshot::{ReadError, Snapshot, StoredSigners},
    values::{path::RepoPath, time::Timestamp, wire},
};
use gix::ObjectId;

use crate::{
    error::StoreError,
    snapshot::{
        files::{Files, FoundFile, PathEntry},
        index::Index,
        places::Far,
    },
    tree::dir::{Dir, TreeNode},
};

/// One commit. Never changes; cheap to clone.
#[derive(Debug, Clone)]
pub struct Head {
    /// The zero id before the first commit.
    pub commit: ObjectId,
    pub files: Files,
    pub index: Index,
}

impl Head {
    pub fn entry(&self, path: &RepoPath) -> Option<PathEntry> {
        self.files.entry(path)
    }

    /// The file at `path`; `None` if nothing or a directory is there.
    pub fn file(&self, path: &RepoPath) -> Option<FoundFile<'_>> {
        self.files.find(path)
    }

    /// The same for a path that is not parsed yet; `None` also where it is not spelled as [`RepoPath`] does.
    pub fn file_as_spelled(&self, path: &str) -> Option<FoundFile<'_>> {
        self.files.places.as_ref()?.find(path).map(FoundFile::at)
    }

    /// The nearest active signers file at or above `path`.
    pub fn nearest_signers(&self, path: &RepoPath) -> Option<FoundFile<'_>> {
        let files = &self.files;
        match files.places.as_ref().map_or(Err(Far), |places| places.find_nearest_signers(path)) {
            Ok(place) => place.map(FoundFile::at),
            Err(Far) => {
                let id = files.root.find_nearest(path, [wire::ACTIVE_DIR, wire::SIGNERS_FILE])?;
                Some(FoundFile { id, spot: None })
            }
        }
    }

    /// The content of what was found at this commit.
    pub fn content(&self, found: FoundFile<'_>) -> Result<Bytes, StoreError> {
        let FoundFile { id, spot } = found;
        let objects = &self.files.objects;
        match spot {
            Some(spot) => objects.content(&id, spot),
            None => objects.blob(&id).map(Bytes::from_owner),
        }
    }

    /// The same where it costs no more than a look: it lies in a pack as it is, or is in the cache and small.
    pub fn content_at_hand(&self, found: FoundFile<'_>, most: usize) -> Option<Bytes> {
        let FoundFile { id, spot } = found;
        self.files.objects.content_at_hand(&id, spot, most)
    }

    /// The state of a project's signers history, which names exactly its entries; `None` where it has none.
    pub fn history_id(&self, project: &RepoPath) -> Option<ObjectId> {
        match self.files.root.find(&layout::history_dir(project))? {
            TreeNode::Dir(id, _) => Some(*id),
            TreeNode::File(_) | TreeNode::Foreign(_) => None,
        }
    }

    /// The root of the tree; two heads with the same files have equal ones.
    pub fn root(&self) -> &Arc<Dir> {
        &self.files.root
    }
}

impl Snapshot for Head {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        self.files.read(path)
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.files.contains(path)
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        self.files.read_signers(path)
    }

    fn governing_project(&self, path: &RepoPath) -> Option<RepoPath> {
        let near = self.files.places.as_ref().map_or(Err(Far), |places| places.find_nearest_project(path));
        near.unwrap_or_else(|Far| {
            path.self_and_ancestors().find(|dir| self.contains(&layout::active_signers(dir)))
        })
    }

    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        self.files.read_entry_facts(path)
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        Ok(self.files.files_below(dir))
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
