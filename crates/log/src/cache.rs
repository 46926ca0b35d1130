//! What was derived, on disk beside the repository, so that a start does not derive everything again (D87). Both files
//! are read up to the newest checkpoint only; what comes after it is derived again.

use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::{fs::File, io, ops::Range, os::unix::fs::FileExt as _, path::Path, sync::Arc};

use countersign_core::log::tree::{Hash, Tree, TreeHead, empty_root, node_hash};
use countersign_core::log::{record::Leaf, record::Record, status::Statuses};
use countersign_core::values::digest::Sha256;
use countersign_store::{ChangedFile, Disk, ObjectId};

use crate::error::LogError;
use crate::records::{KeptMaps, KeptRecords, RecordFile};

/// A leaf in the file: the commit, and three digests.
const LEAF_BYTES: usize = 20 + 3 * 32;
/// How many leaves wait before they are written together.
const MAX_WAITING_LEAVES: usize = 8_192;
const MAX_WAITING_RECORDS: usize = 8_192;

#[derive(Debug)]
pub(crate) struct LogCache {
    leaves: LeafFile,
    /// How many leaves lie in the file.
    leaves_written: u64,
    new_leaves: Vec<u8>,
    records: RecordFile,
}

/// The leaves, for all who read them.
#[derive(Debug, Clone)]
pub(crate) struct LeafFile(Arc<ChangedFile>);

/// What the caches hold, if it agrees with itself.
#[derive(Debug)]
pub(crate) struct LoadedLog {
    pub(crate) tree: Tree,
    pub(crate) recount: Recount,
    /// The map of `CacheWish::earlier`, if that was asked for, and of the whole.
    pub(crate) earlier: Option<Statuses>,
    pub(crate) statuses: Statuses,
}

/// How far to read the caches.
#[derive(Clone, Copy)]
pub(crate) struct CacheWish<'a> {
    pub(crate) head: TreeHead,
    /// A size before, whose map is needed too.
    pub(crate) earlier: Option<u64>,
    /// Whether the result is no longer wanted.
    pub(crate) is_stopping: &'a dyn Fn() -> bool,
}

impl LogCache {
    pub(crate) fn open(disk: &Disk, dir: &Path, kept: KeptRecords) -> Result<Self, LogError> {
        std::fs::create_dir_all(dir).map_err(LogError::cache(dir))?;
        let path = dir.join("leaves");
        let leaves = disk.open_changed(&path).map_err(LogError::cache(&path))?;
        Ok(Self {
            leaves: LeafFile(Arc::new(leaves)),
            leaves_written: 0,
            new_leaves: Vec::new(),
            records: RecordFile::open(disk, dir, kept)?,
        })
    }

    pub(crate) fn leaves(&self) -> &LeafFile {
        &self.leaves
    }

    /// Whether nothing was ever derived, as far as the files say.
    pub(crate) fn is_empty_on_disk(&self) -> Result<bool, LogError> {
        let found = self.leaves.0.file().metadata().map_err(self.leaves.fail())?;
        Ok(found.len() == 0)
    }

    /// Reads what the caches say up to a checkpoint. `None` if it is not the log of that checkpoint. Everything behind
    /// is dropped.
    pub(crate) fn load(&mut self, wish: &CacheWish<'_>) -> Result<Option<LoadedLog>, LogError> {
        let (mut tree, mut recount) = (Tree::default(), Recount::default());
        let (mut earlier_state, mut state) = (None, Statuses::default().root());
        let (leaves, fail) = (self.leaves.clone(), self.leaves.fail());
        let mut reader = leaves.reader().map_err(&fail)?;
        let mut bytes = [0; LEAF_BYTES];
        for size in 1..=wish.head.size {
            if (wish.is_stopping)() {
                return Ok(None);
            }
            match reader.read_exact(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                read => read.map_err(&fail)?,
            }
            let leaf = CachedLeaf::read(&bytes);
            let hash = leaf.leaf().hash();
            tree.push(hash);
            recount.push(hash);
            state = leaf.state;
            if wish.earlier == Some(size) {
                earlier_state = Some(state);
            }
        }
        if tree.root(wish.head.size) != Some(wish.head.root) {
            return Ok(None);
        }
        // The maps must be those that the leaves name.
        let (earlier, statuses) = self.records.load(wish.head.size, wish.earlier)?;
        if statuses.root() != state || earlier.as_ref().map(Statuses::root) != earlier_state {
            return Ok(None);
        }
        self.truncate_leaves(wish.head.size)?;
        Ok(Some(LoadedLog { tree, recount, earlier, statuses }))
    }

    /// Begins from nothing.
    pub(crate) fn clear(&mut self) -> Result<(), LogError> {
        self.new_leaves.clear();
        self.truncate_leaves(0)?;
        self.records.clear()
    }

    /// How many leaves there are.
    pub(crate) fn len(&self) -> u64 {
        self.leaves_written + (self.new_leaves.len() / LEAF_BYTES) as u64
    }

    /// Adds the next leaf. It is on disk after [`LogCache::sync`].
    pub(crate) fn push(&mut self, leaf: &CachedLeaf, records: Vec<Record>) -> Result<(), LogError> {
        let number = self.len();
        leaf.write(&mut self.new_leaves);
        self.records.push(number, records);
        let is_much = self.new_leaves.len() > MAX_WAITING_LEAVES * LEAF_BYTES
            || self.records.waiting() > MAX_WAITING_RECORDS;
        if is_much { self.write() } else { Ok(()) }
    }

    /// Puts everything on disk. Only a checkpoint makes it count.
    pub(crate) fn sync(&mut self) -> Result<(), LogError> {
        self.write()?;
        self.leaves.0.sync().map_err(self.leaves.fail())?;
        self.records.sync()
    }

    /// Drops replaced records from the disk, if there are many. `maps` gives what is still needed of them.
    pub(crate) fn compact(&mut self, maps: impl FnOnce() -> Option<KeptMaps>) -> Result<(), LogError> {
        match self.records.has_grown().then(maps).flatten() {
            Some(maps) => self.records.compact(&maps),
            None => Ok(()),
        }
    }

    /// Writes what waits. After a failure everything is written again, at the same place.
    fn write(&mut self) -> Result<(), LogError> {
        let at = self.leaves_written * LEAF_BYTES as u64;
        self.leaves.0.write_at(&self.new_leaves, at).map_err(self.leaves.fail())?;
        self.leaves_written = self.len();
        self.new_leaves.clear();
        self.records.write()
    }

    fn truncate_leaves(&mut self, size: u64) -> Result<(), LogError> {
        self.leaves.0.set_length(size * LEAF_BYTES as u64).map_err(self.leaves.fail())?;
        self.leaves_written = size;
        Ok(())
    }
}

impl LeafFile {
    /// Reads these leaves, which must be there.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Vec<CachedLeaf>, LogError> {
        let count = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or_default();
        let mut bytes = vec![0; count * LEAF_BYTES];
        let read = self.0.file().read_exact_at(&mut bytes, range.start * LEAF_BYTES as u64);
        read.map_err(self.fail())?;
        Ok(bytes.as_chunks().0.iter().map(CachedLeaf::read).collect())
    }

    fn reader(&self) -> io::Result<impl Read> {
        let mut file: &File = self.0.file();
        file.seek(SeekFrom::Start(0))?;
        Ok(BufReader::with_capacity(1 << 20, file))
    }

    fn fail(&self) -> impl Fn(io::Error) -> LogError + use<> {
        LogError::cache(self.0.path())
    }
}

/// A leaf without its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CachedLeaf {
    pub(crate) commit: ObjectId,
    pub(crate) object: Sha256,
    pub(crate) changes: Sha256,
    pub(crate) state: Hash,
}

impl CachedLeaf {
    pub(crate) fn leaf(&self) -> Leaf {
        let Self { commit, object, changes, state } = *self;
        Leaf { commit: commit.to_string(), object, changes, state }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Self { commit, object, changes, state } = self;
        out.extend_from_slice(commit.as_bytes());
        [object, changes, state].into_iter().for_each(|digest| out.extend_from_slice(digest.as_bytes()));
    }

    fn read(bytes: &[u8; LEAF_BYTES]) -> Self {
        let (commit, digests) = bytes.split_at(20);
        let digest = |number: usize| {
            let bytes = digests.as_chunks().0.get(number).copied();
            Sha256::from_bytes(bytes.expect("three digests: counted in LEAF_BYTES"))
        };
        Self {
            commit: ObjectId::from_bytes_or_panic(commit),
            object: digest(0),
            changes: digest(1),
            state: digest(2),
        }
    }
}

// The root of a log, counted without the tree: from the hashes of its leaves alone, one after the other. If it differs
// from the tree's, memory or disk has changed a bit.

/// The complete subtrees that a log consists of, the largest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recount {
    size: u64,
    subtrees: Vec<Hash>,
}

impl Recount {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn push(&mut self, leaf: Hash) {
        let mut hash = leaf;
        // Each bit that is set stands for a subtree; adding one carries.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.subtrees.pop() {
                hash = node_hash(&left, &hash);
            }
        }
        self.subtrees.push(hash);
        self.size += 1;
    }

    pub(crate) fn root(&self) -> Hash {
        let folded = self.subtrees.iter().rev().copied().reduce(|right, left| node_hash(&left, &right));
        folded.unwrap_or_else(empty_root)
    }
}
