//! The repository at one commit of a history, as decisions see it.

use std::sync::Arc;

use countersign_core::{
    documents::history::EntryFacts,
    rules::snapshot::{ReadError, Snapshot, StoredSigners},
    values::{path::RepoPath, time::Timestamp},
};

use crate::{
    audit::report::reason_of,
    objects::Objects,
    snapshot::{files::Files, index::Index},
    tree::dir::{Dir, TreeNode},
};

pub(crate) struct AuditState {
    pub(crate) files: Files,
    index: Index,
}

impl AuditState {
    /// What is there before the first commit.
    pub(crate) fn empty(objects: Arc<Objects>) -> Self {
        Self { files: Files { root: Dir::empty(), places: None, objects }, index: Index::default() }
    }

    /// A state to begin with.
    pub(crate) fn of(files: Files) -> Self {
        Self { index: Index::build(&files), files }
    }

    /// The state that differs from this one in the files `touched`.
    pub(crate) fn next(&self, root: Arc<Dir>, touched: &[RepoPath]) -> Self {
        let files = self.files.next(root, touched);
        let mut index = self.index.clone();
        index.update(&files, touched);
        Self { files, index }
    }
}

impl Snapshot for AuditState {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        let Some(TreeNode::File(id)) = self.files.root.find(path) else { return Ok(None) };
        let unreadable = |error| ReadError { path: path.clone(), reason: reason_of(&error) };
        self.files.objects.blob(id).map(Some).map_err(unreadable)
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.files.contains(path)
    }

    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        self.read(path)?;
        self.files.read_entry_facts(path)
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        // First for what is wrong with the object, in words.
        self.read(path)?;
        self.files.read_signers(path)
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
