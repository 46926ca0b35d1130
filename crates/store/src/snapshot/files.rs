//! The files of one commit.

use std::{fmt, sync::Arc};

use countersign_core::{
    documents::history::EntryFacts,
    rules::{
        snapshot::{ReadError, StoredSigners},
        stored,
    },
    values::path::RepoPath,
};
use gix::ObjectId;

use crate::{
    error::StoreError,
    objects::{Objects, spot::Spot},
    snapshot::{places::Places, trie::Place},
    tree::{
        dir::{Dir, TreeNode},
        names::addressable,
    },
};

/// The files of one commit.
#[derive(Clone)]
pub struct Files {
    pub(crate) root: Arc<Dir>,
    /// The same files, for who serves them; a check that goes through many commits does without.
    pub(crate) places: Option<Places>,
    pub(crate) objects: Arc<Objects>,
}

/// A file of one commit.
#[derive(Debug, Clone, Copy)]
pub struct FoundFile<'a> {
    pub id: ObjectId,
    pub(crate) spot: Option<&'a Spot>,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathEntry {
    File(ObjectId),
    Directory,
}

impl Files {
    pub fn entry(&self, path: &RepoPath) -> Option<PathEntry> {
        if let Some(found) = self.find(path) {
            return Some(PathEntry::File(found.id));
        }
        match self.root.find(path)? {
            TreeNode::File(id) => Some(PathEntry::File(*id)),
            TreeNode::Dir(..) => Some(PathEntry::Directory),
            TreeNode::Foreign(_) => None,
        }
    }

    pub fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        self.find(path).map(|found| self.blob(path, found)).transpose()
    }

    pub fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        let found = match self.known_signers(path) {
            Ok(known) => return Ok(known),
            Err(found) => found,
        };
        let signers = StoredSigners::parse(path, self.blob(path, found)?)?;
        self.objects.signers.insert(found.id, signers.clone());
        Ok(Some(signers))
    }

    /// The signers file at `path`, where it was parsed before; else what has to be parsed.
    pub fn known_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, FoundFile<'_>> {
        let Some(found) = self.find(path) else { return Ok(None) };
        self.objects.signers.get(&found.id).map(Some).ok_or(found)
    }

    /// The same for the entry of a history.
    pub fn known_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, FoundFile<'_>> {
        let Some(found) = self.find(path) else { return Ok(None) };
        self.objects.entry_facts.get(&found.id).map(Some).ok_or(found)
    }

    pub fn contains(&self, path: &RepoPath) -> bool {
        self.find(path).is_some()
    }

    pub fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        let found = match self.known_entry_facts(path) {
            Ok(known) => return Ok(known),
            Err(found) => found,
        };
        let facts = stored::parse_stored(path, EntryFacts::parse(&self.blob(path, found)?))?;
        self.objects.entry_facts.insert(found.id, facts);
        Ok(Some(facts))
    }

    pub(crate) fn find(&self, path: &RepoPath) -> Option<FoundFile<'_>> {
        if let Some(places) = &self.places {
            return places.find(path.as_str()).map(FoundFile::at);
        }
        match self.root.find(path)? {
            TreeNode::File(id) => Some(FoundFile { id: *id, spot: None }),
            TreeNode::Dir(..) | TreeNode::Foreign(_) => None,
        }
    }

    fn blob(&self, path: &RepoPath, found: FoundFile<'_>) -> Result<Arc<[u8]>, ReadError> {
        let FoundFile { id, spot } = found;
        let blob = match spot {
            Some(spot) => self.objects.blob_at(&id, spot),
            None => self.objects.blob(&id),
        };
        blob.map_err(|error| unreadable(path, &error))
    }

    /// The files after a change of those `touched`, which made the tree `root`.
    pub(crate) fn next(&self, root: Arc<Dir>, touched: &[RepoPath]) -> Self {
        let mut places = self.places.clone();
        if let Some(places) = &mut places {
            for path in touched {
                let id = match root.find(path) {
                    Some(TreeNode::File(id)) => Some(*id),
                    Some(TreeNode::Dir(..) | TreeNode::Foreign(_)) | None => None,
                };
                places.set(path.as_str(), id);
            }
        }
        Self { root, places, objects: Arc::clone(&self.objects) }
    }

    /// Every file below `dir`, sorted.
    pub fn files_below(&self, dir: &RepoPath) -> Vec<RepoPath> {
        let mut files = Vec::new();
        if let Some(TreeNode::Dir(_, below)) = self.root.find(dir) {
            below.walk(&mut format!("{dir}/"), &mut |path, _| files.extend(addressable(path)));
        }
        files
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
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Files").field(&self.root.id).finish()
    }
}

impl<'a> FoundFile<'a> {
    pub(crate) fn at(place: &'a Place) -> Self {
        Self { id: place.id, spot: Some(&place.spot) }
    }
}

/// Where on disk it is missing is for the log; callers are told the file alone.
pub fn unreadable(path: &RepoPath, error: &StoreError) -> ReadError {
    tracing::error!(%path, %error, "a stored file cannot be read");
    ReadError { path: path.clone(), reason: "it cannot be read from the repository".to_owned() }
}
