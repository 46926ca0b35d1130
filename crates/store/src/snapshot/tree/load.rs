//! Reading a tree into memory: the whole of it at start, and what is new in it when a history is checked.

use std::{collections::HashMap, str, sync::Arc};

use countersign_core::values::bounds::{PATH_BYTES, PATH_SEGMENTS};
use gix::{ObjectId, hash::Kind as HashKind, objs::Kind, objs::TreeRefIter, objs::tree::EntryKind};

use crate::error::StoreError;
use crate::objects::{Objects, delta::common_prefix, delta::common_suffix};
use crate::snapshot::tree::{Dir, DirEntry, Foreign, TreeNode, intern};

/// How many files and directories a tree may have. A million takes some hundred megabytes of memory; a tree of so many
/// that no machine could serve it was made to exhaust one.
const MAX_ENTRIES: usize = 16_000_000;
/// How many of them may have to be read to get from one commit to the next. A change touches some ten files.
const MAX_NEW_ENTRIES: usize = 1_000_000;
/// The size beyond which a directory is read as a difference to the version before.
const WIDE_BYTES: usize = 256;
/// A directory with no directory inside and no more files than this is read again wherever it is named: nearly all
/// directories are such, and to remember them would cost more.
const SMALL: usize = 16;

pub(crate) fn load_tree(objects: &Objects, id: ObjectId) -> Result<Arc<Dir>, StoreError> {
    if id == ObjectId::empty_tree(HashKind::Sha1) {
        return Ok(Dir::empty());
    }
    let mut loader = Loader::new(objects, MAX_ENTRIES);
    let root = loader.load_dir(id, None)?;
    // What was read is bounded; what lies in several places is read once, and counts wherever it lies.
    if loader.shares && count_entries(&root, &mut HashMap::new()) > MAX_ENTRIES {
        return Err(loader.too_many());
    }
    Ok(root)
}

/// Loads a tree of which most is known already, and names the directories that are not written as we write them. One
/// directory can lie in any number of places: a walk of the tree has to count.
pub(crate) fn load_next(
    objects: &Objects,
    id: ObjectId,
    previous: &Arc<Dir>,
) -> Result<(Arc<Dir>, Vec<String>), StoreError> {
    if id == ObjectId::empty_tree(HashKind::Sha1) {
        return Ok((Dir::empty(), Vec::new()));
    }
    let mut loader = Loader { odd: Some(Vec::new()), ..Loader::new(objects, MAX_NEW_ENTRIES) };
    let root = loader.load_dir(id, Some(previous))?;
    Ok((root, loader.odd.unwrap_or_default()))
}

/// Reads one tree, and knows where in it we are.
struct Loader<'a> {
    objects: &'a Objects,
    path: String,
    /// How many directories the path names.
    depth: usize,
    /// How many entries may be read in all, and how many still.
    max_entries: usize,
    left: usize,
    /// Directories that were read before, and how deep they lay. Without it, a few trees that name one another twice
    /// would take for ever.
    known: HashMap<ObjectId, (usize, Arc<Dir>)>,
    /// Whether a directory was met again.
    shares: bool,
    /// Directories whose bytes are another spelling of their entries, if that matters.
    odd: Option<Vec<String>>,
}

impl<'a> Loader<'a> {
    fn new(objects: &'a Objects, max_entries: usize) -> Self {
        Self {
            objects,
            path: String::new(),
            depth: 0,
            max_entries,
            left: max_entries,
            known: HashMap::new(),
            shares: false,
            odd: None,
        }
    }

    fn load_dir(&mut self, id: ObjectId, previous: Option<&Arc<Dir>>) -> Result<Arc<Dir>, StoreError> {
        if let Some(previous) = previous.filter(|previous| previous.id == id) {
            return Ok(Arc::clone(previous));
        }
        // What is inside fits wherever it does not lie deeper than it did: so the depth of all that is read is bounded.
        if let Some((_, dir)) = self.known.get(&id).filter(|(depth, _)| self.depth <= *depth) {
            self.shares = true;
            return Ok(Arc::clone(dir));
        }
        if self.depth >= PATH_SEGMENTS {
            let reason = format!("it is too deep: no path has more than {PATH_SEGMENTS} names");
            return Err(StoreError::corrupt(&self.path, reason));
        }
        // Findings spell out paths, and each name of a tree can be as long as the tree.
        if self.odd.is_some() && self.path.len() > PATH_BYTES {
            let begin: String = self.path.chars().take(PATH_BYTES / 4).collect();
            let reason = format!("no path is longer than {PATH_BYTES} bytes");
            return Err(StoreError::corrupt(begin + "…", reason));
        }
        let bytes = self.objects.read(&id, Kind::Tree)?;
        let dir = match previous.filter(|_| bytes.len() > WIDE_BYTES) {
            Some(previous) => self.load_difference(id, &bytes, previous)?,
            None => None,
        };
        let dir = match dir {
            Some(dir) => dir,
            None => self.load_whole(id, &bytes, previous)?,
        };
        if dir.entries.iter().nth(SMALL).is_some() || dir.entries.iter().any(|entry| entry.node.is_dir()) {
            self.known.insert(id, (self.depth, Arc::clone(&dir)));
        }
        Ok(dir)
    }

    fn load_whole(
        &mut self,
        id: ObjectId,
        bytes: &[u8],
        previous: Option<&Arc<Dir>>,
    ) -> Result<Arc<Dir>, StoreError> {
        let entries = self.read_entries(id, bytes, previous)?;
        let dir = Dir::from_stored(id, entries);
        let dir = dir.ok_or_else(|| StoreError::corrupt(id, "its entries are not in order"))?;
        if let Some(odd) = &mut self.odd
            && dir.entries.encode() != bytes
        {
            odd.push(self.path.clone());
        }
        Ok(dir)
    }

    /// A wide directory mostly stays what it was: what it begins and ends with is not read again, and shared. `None`
    /// where that does not give these very bytes.
    fn load_difference(
        &mut self,
        id: ObjectId,
        bytes: &[u8],
        previous: &Arc<Dir>,
    ) -> Result<Option<Arc<Dir>>, StoreError> {
        let old = previous.entries.encode();
        let prefix = common_prefix(&old, bytes);
        let behind = old.len() - common_suffix(&old[prefix..], &bytes[prefix..]);
        let (mut at, mut begin, mut end) = (0, 0, old.len());
        let mut entries = previous.entries.clone();
        for entry in previous.entries.iter() {
            let next = at + entry.encoded_len();
            if next <= prefix {
                begin = next;
            } else if at >= behind {
                end = at;
                break;
            } else if let Ok(gone) = entries.locate(&entry.name, entry.node.is_dir()) {
                entries.remove(gone);
            }
            at = next;
        }
        let middle = &bytes[begin..bytes.len() - (old.len() - end)];
        for entry in self.read_entries(id, middle, Some(previous))? {
            match entries.locate(&entry.name, entry.node.is_dir()) {
                Ok(_) => return Ok(None),
                Err(at) => entries.insert(at, entry),
            }
        }
        let dir = Dir { id, entries };
        Ok((dir.entries.encode() == bytes).then(|| Arc::new(dir)))
    }

    fn read_entries(
        &mut self,
        id: ObjectId,
        bytes: &[u8],
        previous: Option<&Arc<Dir>>,
    ) -> Result<Vec<DirEntry>, StoreError> {
        let mut entries = Vec::new();
        let length = self.path.len();
        for entry in TreeRefIter::from_bytes(bytes, HashKind::Sha1) {
            let entry = entry.map_err(|error| StoreError::corrupt(id, error))?;
            let name = str::from_utf8(entry.filename).map_err(|_| {
                StoreError::corrupt(format!("{}{}", self.path, entry.filename), "the name is not UTF-8")
            })?;
            self.left = self.left.checked_sub(1).ok_or_else(|| self.too_many())?;
            self.path.push_str(name);
            let node = match entry.mode.kind() {
                EntryKind::Blob => TreeNode::File(entry.oid.to_owned()),
                EntryKind::Tree => {
                    self.path.push('/');
                    self.depth += 1;
                    let known = previous.and_then(|previous| previous.subdir(name));
                    let dir = self.load_dir(entry.oid.to_owned(), known)?;
                    self.depth -= 1;
                    TreeNode::of(dir)
                }
                kind @ (EntryKind::Link | EntryKind::Commit | EntryKind::BlobExecutable) => {
                    tracing::warn!(path = self.path, "not a plain file, and none of ours: it is not served");
                    TreeNode::Foreign(Box::new(Foreign { kind, id: entry.oid.to_owned() }))
                }
            };
            self.path.truncate(length);
            entries.push(DirEntry { name: intern(name), node });
        }
        Ok(entries)
    }

    fn too_many(&self) -> StoreError {
        let reason = format!("there are more than {} files and directories to read", self.max_entries);
        StoreError::corrupt("the tree", reason)
    }
}

/// How many files and directories there are below, as a walk of it all meets them. Each directory is counted once and
/// remembered, unless only files are in it.
fn count_entries(dir: &Dir, counted: &mut HashMap<ObjectId, usize>) -> usize {
    if let Some(count) = counted.get(&dir.id) {
        return *count;
    }
    let (mut count, mut has_dirs) = (0_usize, false);
    for entry in dir.entries.iter() {
        let below = entry.node.dir().map(|dir| count_entries(dir, counted));
        has_dirs |= below.is_some();
        count = count.saturating_add(below.unwrap_or(0)).saturating_add(1);
    }
    if has_dirs {
        counted.insert(dir.id, count);
    }
    count
}
