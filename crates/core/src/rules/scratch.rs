//! A part of a repository in memory: what a server showed, or what a drill plays on.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use crate::{
    documents::{
        layout::{self, Signable},
        metadata::Metadata,
    },
    rules::snapshot::{Change, ReadError, Snapshot, StoredSigners},
    values::{path::RepoPath, time::Timestamp},
};

/// Files in memory that can be read as a repository.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    files: BTreeMap<RepoPath, Arc<[u8]>>,
    /// Parsed signers files. A drill asks for the same file with each signature, and checking its keys takes longest.
    signers: RefCell<BTreeMap<RepoPath, StoredSigners>>,
}

impl Scratch {
    pub fn put(&mut self, path: RepoPath, bytes: impl Into<Arc<[u8]>>) {
        self.files.insert(path, bytes.into());
    }

    /// Forgets a file.
    pub fn remove(&mut self, path: &RepoPath) {
        self.files.remove(path);
    }

    /// Takes files of another one over.
    pub fn absorb(&mut self, other: &Self, wanted: impl Fn(&RepoPath) -> bool) {
        let wanted = other.files.iter().filter(|(path, _)| wanted(path));
        self.files.extend(wanted.map(|(path, bytes)| (path.clone(), Arc::clone(bytes))));
    }

    /// Changes files as a store would.
    pub fn apply(&mut self, change: &Change) {
        for (path, content) in &change.files {
            match content {
                Some(bytes) => drop(self.files.insert(path.clone(), Arc::clone(bytes))),
                None => drop(self.files.remove(path)),
            }
        }
    }

    fn projects(&self) -> impl Iterator<Item = RepoPath> {
        self.files.keys().filter_map(|path| match layout::signable(path) {
            Some(Signable::PendingSigners { project }) => Some(project),
            Some(Signable::Index) | None => layout::project_of_active_signers(path),
        })
    }
}

impl Snapshot for Scratch {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        Ok(self.files.get(path).cloned())
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        let Some(bytes) = self.files.get(path) else { return Ok(None) };
        let known = self.signers.borrow().get(path).filter(|known| Arc::ptr_eq(&known.bytes, bytes)).cloned();
        if let Some(known) = known {
            return Ok(Some(known));
        }
        let parsed = StoredSigners::parse(path, Arc::clone(bytes))?;
        self.signers.borrow_mut().insert(path.clone(), parsed.clone());
        Ok(Some(parsed))
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.files.contains_key(path)
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        Ok(self.files.keys().filter(|file| file.is_inside(dir)).cloned().collect())
    }

    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        let overlaps = |other: &RepoPath| {
            other.as_str().eq_ignore_ascii_case(id.as_str()) || other.is_inside(id) || id.is_inside(other)
        };
        let mut projects: Vec<RepoPath> = self.projects().filter(overlaps).collect();
        projects.dedup();
        projects
    }

    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        let waiting = self.projects().filter(|project| {
            project.is_inside(dir) && !self.files.contains_key(&layout::active_signers(project))
        });
        let metadata = |project| self.files.get(&layout::metadata_of(&layout::pending_signers(&project)));
        let parsed = waiting.filter_map(metadata).filter_map(|bytes| Metadata::parse(bytes).ok());
        parsed.map(|metadata| metadata.origin.retrieved_at).collect()
    }

    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        let is_collecting = |path: &&RepoPath| {
            layout::signable(path) == Some(Signable::Index)
                && path.is_inside(project)
                && self.files.contains_key(&layout::pending_signatures_of(path))
        };
        self.files.keys().filter(is_collecting).cloned().collect()
    }
}
