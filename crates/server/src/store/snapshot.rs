//! The repository at one commit, as decisions and readers see it.

use std::{fmt, sync::Arc};

use countersign_core::{
    path::RepoPath,
    snapshot::{ReadError, Snapshot, StoredSigners},
    time::Timestamp,
    wire,
};
use gix::ObjectId;

use super::{
    index::Index,
    objects::Objects,
    tree::{Dir, Node},
};

/// One commit. Never changes; cheap to clone.
#[derive(Debug, Clone)]
pub struct Head {
    /// The zero id before the first commit.
    pub commit: ObjectId,
    pub files: Files,
    pub index: Index,
}

/// The files of one commit.
#[derive(Clone)]
pub struct Files {
    pub(super) root: Arc<Dir>,
    pub(super) objects: Arc<Objects>,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    File(ObjectId),
    Directory,
}

impl Head {
    pub fn entry(&self, path: &RepoPath) -> Option<Entry> {
        self.files.entry(path)
    }

    /// The nearest active signers file at or above `path`, by its blob.
    pub fn nearest_signers(&self, path: &RepoPath) -> Option<ObjectId> {
        self.files.root.find_nearest(path, [wire::ACTIVE_DIR, wire::SIGNERS_FILE])
    }

    /// The content of a file of this commit, by the id that `entry` or `nearest_signers` gave for `path`.
    pub fn content(&self, path: &RepoPath, id: &ObjectId) -> Result<Arc<[u8]>, ReadError> {
        self.files.blob(path, id)
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

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
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

impl Files {
    pub fn entry(&self, path: &RepoPath) -> Option<Entry> {
        match self.root.find(path)? {
            Node::File(id) => Some(Entry::File(*id)),
            Node::Dir(_) => Some(Entry::Directory),
            Node::Foreign(_) => None,
        }
    }

    pub fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        let Some(Node::File(id)) = self.root.find(path) else { return Ok(None) };
        self.blob(path, id).map(Some)
    }

    pub fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        let Some(Node::File(id)) = self.root.find(path) else { return Ok(None) };
        if let Some(signers) = self.objects.signers.get(id) {
            return Ok(Some(signers));
        }
        let signers = StoredSigners::parse(path, self.blob(path, id)?)?;
        self.objects.signers.insert(*id, signers.clone());
        Ok(Some(signers))
    }

    fn blob(&self, path: &RepoPath, id: &ObjectId) -> Result<Arc<[u8]>, ReadError> {
        self.objects.blob(id).map_err(|error| {
            // Where on disk it is missing is for the log; callers are told the file alone.
            tracing::error!(%path, %error, "a stored file cannot be read");
            ReadError { path: path.clone(), reason: "it cannot be read from the repository".to_owned() }
        })
    }

    /// Every file below `dir`, sorted.
    pub fn files_below(&self, dir: &RepoPath) -> Vec<RepoPath> {
        let mut files = Vec::new();
        if let Some(Node::Dir(below)) = self.root.find(dir) {
            below.walk(&mut format!("{dir}/"), &mut |path, _| files.extend(addressable(path)));
        }
        files
    }

    /// Calls `visit` with the path of every file below `dir`, sorted. Paths that nobody can ask for are among them.
    pub fn walk_below(&self, dir: &RepoPath, visit: &mut dyn FnMut(&str)) {
        if let Some(Node::Dir(below)) = self.root.find(dir) {
            below.walk(&mut format!("{dir}/"), &mut |path, _| visit(path));
        }
    }

    /// Calls `visit` with the path and the blob id of every file, sorted by path.
    pub fn walk(&self, visit: &mut dyn FnMut(&str, ObjectId)) {
        self.root.walk(&mut String::new(), visit);
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Files").field(&self.root.id).finish()
    }
}

/// A name that somebody put into the tree by hand may be none that a path can spell; nobody can ask for such a file.
fn addressable(path: &str) -> Option<RepoPath> {
    RepoPath::parse(path).ok().filter(|parsed| parsed.as_str() == path)
}
