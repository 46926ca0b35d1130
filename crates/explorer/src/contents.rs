//! Every path and every content that some state holds, once each. A state is a list of pairs of their numbers.

use std::{cell::OnceCell, collections::HashMap, sync::Arc};

use countersign_core::{
    documents::{history::EntryFacts, signatures::SignatureSet},
    rules::snapshot::{Change, StoredSigners},
    values::path::RepoPath,
};
use sha2::{Digest as _, Sha256};

use crate::roles::{PathRole, RoleNames};

pub type PathId = u16;
pub type ContentId = u32;

/// The repository at one time: its files, by path number, and which of the world's clocks it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub files: Vec<(PathId, ContentId)>,
    pub clock: u8,
}

#[derive(Debug)]
pub struct Contents {
    paths: Vec<(RepoPath, PathRole)>,
    path_ids: HashMap<RepoPath, PathId>,
    blobs: Vec<Blob>,
    blob_ids: HashMap<Arc<[u8]>, ContentId>,
    names: RoleNames,
}

/// A content, with what the real reader made of it: a store remembers that, too.
#[derive(Debug)]
pub struct Blob {
    pub bytes: Arc<[u8]>,
    pub signers: OnceCell<Option<StoredSigners>>,
    pub signatures: OnceCell<Option<SignatureSet>>,
    pub entry: OnceCell<Option<EntryFacts>>,
}

impl Contents {
    pub fn new(names: RoleNames) -> Self {
        let (paths, blobs) = (Vec::new(), Vec::new());
        Self { paths, path_ids: HashMap::new(), blobs, blob_ids: HashMap::new(), names }
    }

    pub fn path(&self, id: PathId) -> &RepoPath {
        &self.paths[usize::from(id)].0
    }

    pub fn role(&self, id: PathId) -> PathRole {
        self.paths[usize::from(id)].1
    }

    pub fn find_path(&self, path: &RepoPath) -> Option<PathId> {
        self.path_ids.get(path).copied()
    }

    pub fn blob(&self, id: ContentId) -> &Blob {
        &self.blobs[id as usize]
    }

    pub fn bytes(&self, id: ContentId) -> &Arc<[u8]> {
        &self.blob(id).bytes
    }

    pub fn blob_count(&self) -> usize {
        self.blobs.len()
    }

    pub fn intern_path(&mut self, path: &RepoPath) -> PathId {
        if let Some(id) = self.path_ids.get(path) {
            return *id;
        }
        let id = PathId::try_from(self.paths.len()).expect("a small world has few paths");
        self.paths.push((path.clone(), self.names.role(path.as_str())));
        self.path_ids.insert(path.clone(), id);
        id
    }

    pub fn intern(&mut self, bytes: &Arc<[u8]>) -> ContentId {
        if let Some(id) = self.blob_ids.get(bytes) {
            return *id;
        }
        let id = ContentId::try_from(self.blobs.len()).expect("fewer contents than states");
        self.blobs.push(Blob {
            bytes: Arc::clone(bytes),
            signers: OnceCell::new(),
            signatures: OnceCell::new(),
            entry: OnceCell::new(),
        });
        self.blob_ids.insert(Arc::clone(bytes), id);
        id
    }

    /// The state after a change. A file that is deleted must be there, as the store demands.
    pub fn apply(&mut self, before: &State, change: &Change) -> Result<State, String> {
        let mut after = before.clone();
        for (path, content) in &change.files {
            let id = self.intern_path(path);
            let place = after.files.binary_search_by_key(&id, |(path, _)| *path);
            match (content, place) {
                (Some(bytes), Ok(at)) => after.files[at].1 = self.intern(bytes),
                (Some(bytes), Err(at)) => after.files.insert(at, (id, self.intern(bytes))),
                (None, Ok(at)) => drop(after.files.remove(at)),
                (None, Err(_)) => return Err(format!("{path} is deleted, and was not there")),
            }
        }
        Ok(after)
    }
}

impl State {
    pub fn content(&self, path: PathId) -> Option<ContentId> {
        let at = self.files.binary_search_by_key(&path, |(path, _)| *path).ok()?;
        Some(self.files[at].1)
    }
}

/// The first 128 bits of SHA-256.
pub fn hash_parts(parts: &[&[u8]]) -> u128 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    u128::from_le_bytes(digest[..16].try_into().expect("16 bytes of 32"))
}
