//! Every path and every content that some state holds, once each, and every part of a repository. A state is one number
//! for each of its parts.

use std::{cell::OnceCell, collections::HashMap, sync::Arc};

use countersign_core::documents::{history::EntryFacts, signatures::SignatureSet};
use countersign_core::{rules::snapshot::Change, rules::snapshot::StoredSigners, values::path::RepoPath};
use sha2::{Digest as _, Sha256};

use crate::roles::{EARLIER, PathRole, RoleNames};

pub type PathId = u16;
pub type ContentId = u32;
pub type PartId = u32;

/// How many parts a repository has at most.
pub const PARTS: usize = 12;
/// The part without a file.
pub const EMPTY: PartId = 0;

/// The repository at one time: what each of its parts holds, and which of the world's clocks it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct State {
    pub parts: [PartId; PARTS],
    pub clock: u8,
}

#[derive(Debug)]
pub struct Contents {
    paths: Vec<PathFacts>,
    path_ids: HashMap<RepoPath, PathId>,
    blobs: Vec<Blob>,
    blob_ids: HashMap<Arc<[u8]>, ContentId>,
    parts: Vec<StatePart>,
    part_ids: HashMap<Arc<[(PathId, ContentId)]>, PartId>,
    listings: HashMap<Vec<PathId>, u32>,
    names: RoleNames,
}

#[derive(Debug)]
struct PathFacts {
    path: RepoPath,
    role: PathRole,
    part: u8,
}

/// The files of one part, by path number.
#[derive(Debug)]
struct StatePart {
    files: Arc<[(PathId, ContentId)]>,
    /// A number that is equal for parts that hold the same paths.
    listing: u32,
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
        assert!(names.part_count() <= PARTS, "a world has at most {PARTS} parts");
        let mut contents = Self {
            paths: Vec::new(),
            path_ids: HashMap::new(),
            blobs: Vec::new(),
            blob_ids: HashMap::new(),
            parts: Vec::new(),
            part_ids: HashMap::new(),
            listings: HashMap::new(),
            names,
        };
        let empty = contents.intern_part(&[]);
        assert_eq!(empty, EMPTY, "the first part is the empty one");
        contents
    }

    pub fn names(&self) -> &RoleNames {
        &self.names
    }

    pub fn path(&self, id: PathId) -> &RepoPath {
        &self.paths[usize::from(id)].path
    }

    pub fn role(&self, id: PathId) -> PathRole {
        self.paths[usize::from(id)].role
    }

    pub fn find_path(&self, path: &RepoPath) -> Option<PathId> {
        self.path_ids.get(path).copied()
    }

    /// The part that a file at this path belongs to.
    pub fn part_of(&self, path: &RepoPath) -> usize {
        match self.find_path(path) {
            Some(id) => usize::from(self.paths[usize::from(id)].part),
            None => self.names.part(self.names.role(path.as_str())),
        }
    }

    pub fn blob(&self, id: ContentId) -> &Blob {
        &self.blobs[id as usize]
    }

    pub fn bytes(&self, id: ContentId) -> &Arc<[u8]> {
        &self.blob(id).bytes
    }

    pub fn files(&self, part: PartId) -> &[(PathId, ContentId)] {
        &self.parts[part as usize].files
    }

    /// All files of a state.
    pub fn state_files(&self, state: &State) -> impl Iterator<Item = (PathId, ContentId)> {
        state.parts.iter().flat_map(|part| self.files(*part).iter().copied())
    }

    pub fn listing(&self, part: PartId) -> u32 {
        self.parts[part as usize].listing
    }

    pub fn find(&self, state: &State, path: PathId) -> Option<ContentId> {
        let files = self.files(state.parts[usize::from(self.paths[usize::from(path)].part)]);
        let at = files.binary_search_by_key(&path, |(path, _)| *path).ok()?;
        Some(files[at].1)
    }

    pub fn intern_path(&mut self, path: &RepoPath) -> PathId {
        if let Some(id) = self.path_ids.get(path) {
            return *id;
        }
        let id = PathId::try_from(self.paths.len()).expect("a small world has few paths");
        let role = self.names.role(path.as_str());
        let part = u8::try_from(self.names.part(role)).expect("few parts");
        self.paths.push(PathFacts { path: path.clone(), role, part });
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

    fn intern_part(&mut self, files: &[(PathId, ContentId)]) -> PartId {
        if let Some(id) = self.part_ids.get(files) {
            return *id;
        }
        let id = PartId::try_from(self.parts.len()).expect("fewer parts than states");
        let paths: Vec<PathId> = files.iter().map(|(path, _)| *path).collect();
        let next = u32::try_from(self.listings.len()).expect("fewer lists than parts");
        let listing = *self.listings.entry(paths).or_insert(next);
        let files: Arc<[(PathId, ContentId)]> = Arc::from(files);
        self.part_ids.insert(Arc::clone(&files), id);
        self.parts.push(StatePart { files, listing });
        id
    }

    /// The state without what was said of contents before. No rule depends on it, and with every list of words that
    /// there can be, a world would have no end.
    pub fn forget_said(&mut self, state: &State) -> State {
        let mut kept = *state;
        for part in &mut kept.parts {
            let is_said = |path: PathId, contents: &Self| matches!(contents.role(path), PathRole::Release { slot, .. } if usize::from(slot) == EARLIER);
            let files = self.files(*part);
            if files.iter().any(|(path, _)| is_said(*path, self)) {
                let files: Vec<_> = files.iter().copied().filter(|(path, _)| !is_said(*path, self)).collect();
                *part = self.intern_part(&files);
            }
        }
        kept
    }

    /// The state after a change. A file that is deleted must be there, as the store demands.
    pub fn apply(&mut self, before: &State, change: &Change) -> Result<State, String> {
        let mut parts: [Option<Vec<(PathId, ContentId)>>; PARTS] = Default::default();
        for (path, content) in &change.files {
            let id = self.intern_path(path);
            let at = usize::from(self.paths[usize::from(id)].part);
            let content = content.as_ref().map(|bytes| self.intern(bytes));
            let files = parts[at].get_or_insert_with(|| self.files(before.parts[at]).to_vec());
            let found = files.binary_search_by_key(&id, |(path, _)| *path);
            match (content, found) {
                (Some(content), Ok(at)) => files[at].1 = content,
                (Some(content), Err(at)) => files.insert(at, (id, content)),
                (None, Ok(at)) => drop(files.remove(at)),
                (None, Err(_)) => return Err(format!("{path} is deleted, and was not there")),
            }
        }
        let mut after = *before;
        for (at, files) in parts.iter().enumerate() {
            if let Some(files) = files {
                after.parts[at] = self.intern_part(files);
            }
        }
        Ok(after)
    }
}

/// The first 128 bits of SHA-256.
pub fn hash_texts(texts: &[&[u8]]) -> u128 {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let digest: [u8; 32] = hash.finalize().into();
    u128::from_le_bytes(digest[..16].try_into().expect("16 bytes of 32"))
}
