//! Which files differ between two trees in the repository. Only directories that differ are read.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use countersign_core::values::{bounds::JOURNAL_ENTRY_FILES, bounds::PATH_SEGMENTS, path::RepoPath};
use gix::objs::{Kind, TreeRefIter, tree::EntryKind, tree::EntryRef};
use gix::{ObjectId, hash::Kind as HashKind};

use crate::objects::{Objects, delta::DeltaBases, delta::RecentObject, delta::RecentObjects};
use crate::{error::StoreError, snapshot::tree::addressable};

/// Directories in memory, for one reader; and as much again of what differences are to.
const RECENT_BYTES: usize = 4 << 20;

/// New blobs by path; `None` for files that are gone.
pub(super) type DifferingFiles = BTreeMap<RepoPath, Option<ObjectId>>;

/// Reads trees one after the other. What one commit made is what the next one changes.
#[derive(Debug)]
pub(super) struct TreeReader {
    objects: Arc<Objects>,
    recent: RecentObjects<ObjectId>,
    bases: DeltaBases,
}

impl TreeReader {
    pub(super) fn new(objects: Arc<Objects>) -> Self {
        Self { objects, recent: RecentObjects::new(RECENT_BYTES), bases: DeltaBases::new(RECENT_BYTES) }
    }

    pub(super) fn compare(
        &mut self,
        old: Option<ObjectId>,
        new: ObjectId,
    ) -> Result<DifferingFiles, StoreError> {
        let mut files = BTreeMap::new();
        let mut walk = TreeWalk { reader: self, path: String::new(), depth: 0, files: &mut files };
        walk.compare(old, Some(new))?;
        Ok(files)
    }

    fn read(&mut self, id: Option<ObjectId>) -> Result<Arc<[u8]>, StoreError> {
        let Some(id) = id.filter(|id| *id != ObjectId::empty_tree(HashKind::Sha1)) else {
            return Ok(Arc::default());
        };
        if let Some(tree) = self.recent.get(&id) {
            return Ok(tree.into_content());
        }
        let bytes: Arc<[u8]> = self.objects.read_after(&id, Kind::Tree, Some(&mut self.bases))?.into();
        self.recent.insert(id, RecentObject::tree(Arc::clone(&bytes)));
        Ok(bytes)
    }
}

/// Two trees, and where in them we are.
struct TreeWalk<'a> {
    reader: &'a mut TreeReader,
    path: String,
    depth: usize,
    files: &'a mut DifferingFiles,
}

impl TreeWalk<'_> {
    fn compare(&mut self, old: Option<ObjectId>, new: Option<ObjectId>) -> Result<(), StoreError> {
        if old == new {
            return Ok(());
        }
        if self.depth > PATH_SEGMENTS {
            return Err(self.refuse("it is deeper than any path can be"));
        }
        let (before, after) = (self.reader.read(old)?, self.reader.read(new)?);
        let mut before = TreeRefIter::from_bytes(&before, HashKind::Sha1).peekable();
        let mut after = TreeRefIter::from_bytes(&after, HashKind::Sha1).peekable();
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return Ok(()),
                (Some(Ok(_)), None) => Ordering::Less,
                (None, Some(Ok(_))) => Ordering::Greater,
                (Some(Ok(old)), Some(Ok(new))) => old.cmp(new),
                (Some(Err(_)), _) | (_, Some(Err(_))) => return Err(self.refuse("the directory is damaged")),
            };
            let old = if order.is_le() { before.next().and_then(Result::ok) } else { None };
            let new = if order.is_ge() { after.next().and_then(Result::ok) } else { None };
            if old.map(|entry| (entry.mode, entry.oid)) != new.map(|entry| (entry.mode, entry.oid)) {
                self.compare_entries(old, new)?;
            }
        }
    }

    /// Entries of the same name and sort, or one of them alone.
    fn compare_entries(
        &mut self,
        old: Option<EntryRef<'_>>,
        new: Option<EntryRef<'_>>,
    ) -> Result<(), StoreError> {
        let Some(entry) = new.or(old) else { return Ok(()) };
        let length = self.path.len();
        let name = str::from_utf8(entry.filename).map_err(|_| self.refuse("a name in it is not UTF-8"))?;
        self.path.push_str(name);
        let [before, after] = [old, new].map(|entry| entry.map(|entry| entry.oid.to_owned()));
        match entry.mode.kind() {
            EntryKind::Tree => {
                self.path.push('/');
                self.depth += 1;
                self.compare(before, after)?;
                self.depth -= 1;
            }
            EntryKind::Blob if old.is_none_or(|old| old.mode.kind() == EntryKind::Blob) => self.add(after)?,
            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link | EntryKind::Commit => {
                return Err(self.refuse("it is a link, an executable or a submodule, and none of ours"));
            }
        }
        self.path.truncate(length);
        Ok(())
    }

    fn add(&mut self, blob: Option<ObjectId>) -> Result<(), StoreError> {
        let path = addressable(&self.path).ok_or_else(|| self.refuse("no path can spell this name"))?;
        if self.files.len() == JOURNAL_ENTRY_FILES {
            return Err(self.refuse("the commit changes more files than a follower reads"));
        }
        self.files.insert(path, blob);
        Ok(())
    }

    fn refuse(&self, reason: &str) -> StoreError {
        StoreError::corrupt(format!("the path {:?}", self.path), reason)
    }
}
