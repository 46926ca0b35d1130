//! The Git tree of a commit, in memory. Versions share whatever they have in common, so that keeping an old one costs
//! nothing, and a change copies only the directories on its paths.
//!
//! The entries of a directory lie in pieces: a change in a directory of thousands copies one piece.

pub mod edit;
pub(crate) mod load;

use std::{cmp::Ordering, collections::HashSet, sync::Arc, sync::LazyLock};

use countersign_core::values::{path::RepoPath, path::Segments, wire};
use gix::{ObjectId, hash::Kind as HashKind, objs::tree::EntryKind};
use smallvec::SmallVec;
use smol_str::SmolStr;

/// A piece grows to twice this before it is split.
const PIECE: usize = 64;

/// A directory: the id of its Git tree, and its entries in Git's order.
#[derive(Debug, PartialEq, Eq)]
pub struct Dir {
    pub id: ObjectId,
    pub entries: DirEntries,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name. Short ones lie in the entry itself: a read compares names, and waits for memory at each that lies
    /// elsewhere.
    pub name: SmolStr,
    pub node: TreeNode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeNode {
    File(ObjectId),
    /// A directory. Its id is here as well: the writer of a directory of thousands needs the ids of all, and would wait
    /// for memory at each that lies elsewhere.
    Dir(ObjectId, Arc<Dir>),
    /// Something that the store never writes. Boxed, since there should be none.
    Foreign(Box<Foreign>),
}

/// A link, an executable or a submodule, which someone else put into the tree. It is kept, and never looked into:
/// following a link would leave the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    pub kind: EntryKind,
    pub id: ObjectId,
}

/// The entries of a directory, in Git's order, each once.
#[derive(Debug, Clone, Default)]
pub struct DirEntries {
    /// The pieces of the list, never empty ones. Nearly always it is one, which then lies here and not one step further
    /// away. There is no room to spare: with a million files, that is what fills the memory.
    pub pieces: SmallVec<[Arc<[DirEntry]>; 1]>,
}

/// The position at which an entry is, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    piece: usize,
    entry: usize,
}

impl Dir {
    pub fn empty() -> Arc<Self> {
        Arc::new(Self { id: ObjectId::empty_tree(HashKind::Sha1), entries: DirEntries::default() })
    }

    /// A directory as it was stored; `None` where the entries are not in Git's order, each once.
    pub fn from_stored(id: ObjectId, entries: Vec<DirEntry>) -> Option<Arc<Self>> {
        Some(Arc::new(Self { id, entries: DirEntries::new(entries)? }))
    }

    pub fn find(&self, path: &RepoPath) -> Option<&TreeNode> {
        let mut segments = path.segments();
        let last = segments.next_back()?;
        segments.try_fold(self, |dir, name| dir.subdir(name).map(|dir| &**dir))?.get(last)
    }

    /// The content of the file at `path`; `None` if something else or nothing is there.
    pub fn file(&self, path: &RepoPath) -> Option<ObjectId> {
        self.find(path)?.file()
    }

    /// The file with this relative path in the deepest directory that has one, of those that lead to `path` and `path`
    /// itself.
    pub fn find_nearest(&self, path: &RepoPath, relative: [&str; 2]) -> Option<ObjectId> {
        self.find_below(path.segments(), relative)
    }

    /// The deepest comes first: it is most often one of the last few.
    fn find_below(&self, mut segments: Segments<'_>, relative: [&str; 2]) -> Option<ObjectId> {
        let dir = self.subdir(segments.next()?)?;
        let [inner, file] = relative;
        dir.find_below(segments, relative).or_else(|| dir.subdir(inner)?.get(file)?.file())
    }

    /// Calls `visit` with the path and content of every file below, in the order of the paths. `prefix` is what stands
    /// before each path: empty, or a directory and its slash.
    pub fn walk(&self, prefix: &mut String, visit: &mut dyn FnMut(&str, ObjectId)) {
        let length = prefix.len();
        for entry in self.entries.iter() {
            prefix.push_str(&entry.name);
            match &entry.node {
                TreeNode::File(id) => visit(prefix, *id),
                TreeNode::Dir(_, dir) => {
                    prefix.push('/');
                    dir.walk(prefix, visit);
                }
                TreeNode::Foreign(_) => {}
            }
            prefix.truncate(length);
        }
    }

    pub fn subdir(&self, name: &str) -> Option<&Arc<Dir>> {
        self.entries.node(self.entries.locate(name, true).ok()?).dir()
    }

    pub fn get(&self, name: &str) -> Option<&TreeNode> {
        let at = self.entries.locate(name, false).or_else(|_| self.entries.locate(name, true)).ok()?;
        Some(self.entries.node(at))
    }
}

impl DirEntry {
    /// How many bytes of its directory the entry takes.
    pub fn encoded_len(&self) -> usize {
        let (kind, id) = self.node.kind_and_id();
        kind.as_octal_str().len() + self.name.len() + id.as_slice().len() + 2
    }
}

impl TreeNode {
    pub fn of(dir: Arc<Dir>) -> Self {
        Self::Dir(dir.id, dir)
    }

    fn file(&self) -> Option<ObjectId> {
        match self {
            TreeNode::File(id) => Some(*id),
            TreeNode::Dir(..) | TreeNode::Foreign(_) => None,
        }
    }

    pub(crate) fn dir(&self) -> Option<&Arc<Dir>> {
        match self {
            TreeNode::Dir(_, dir) => Some(dir),
            TreeNode::File(_) | TreeNode::Foreign(_) => None,
        }
    }

    /// Directories with the same id are the same, however large they are.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.kind_and_id() == other.kind_and_id()
    }

    fn kind_and_id(&self) -> (EntryKind, &ObjectId) {
        match self {
            TreeNode::File(id) => (EntryKind::Blob, id),
            TreeNode::Dir(id, _) => (EntryKind::Tree, id),
            TreeNode::Foreign(foreign) => (foreign.kind, &foreign.id),
        }
    }

    pub fn is_dir(&self) -> bool {
        matches!(self, TreeNode::Dir(..))
    }
}

impl DirEntries {
    /// Makes a list; `None` if the entries are not in Git's order, each once.
    pub fn new(entries: Vec<DirEntry>) -> Option<Self> {
        let sorted = entries.is_sorted_by(|a, b| compare(a, b.name.as_bytes(), b.node.is_dir()).is_lt());
        let pieces = entries.chunks(PIECE).map(Arc::from).collect();
        sorted.then_some(Self { pieces })
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &DirEntry> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// The bytes of the Git tree with these entries.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.iter().map(|entry| entry.name.len() + 28).sum());
        for entry in self.iter() {
            let (kind, id) = entry.node.kind_and_id();
            out.extend_from_slice(kind.as_octal_str());
            out.push(b' ');
            out.extend_from_slice(entry.name.as_bytes());
            out.push(0);
            out.extend_from_slice(id.as_slice());
        }
        out
    }

    pub fn locate(&self, name: &str, is_dir: bool) -> Result<At, At> {
        let begins_before = |piece: &Arc<[DirEntry]>| compare(&piece[0], name.as_bytes(), is_dir).is_le();
        let piece = self.pieces.partition_point(begins_before).saturating_sub(1);
        let entries = self.pieces.get(piece).map_or(&[][..], |piece| piece);
        let found = entries.binary_search_by(|entry| compare(entry, name.as_bytes(), is_dir));
        found.map(|entry| At { piece, entry }).map_err(|entry| At { piece, entry })
    }

    pub fn node(&self, at: At) -> &TreeNode {
        &self.pieces[at.piece][at.entry].node
    }

    pub fn replace(&mut self, at: At, node: TreeNode) {
        let mut entries = self.pieces[at.piece].to_vec();
        entries[at.entry].node = node;
        self.pieces[at.piece] = entries.into();
    }

    pub fn insert(&mut self, at: At, entry: DirEntry) {
        let Some(piece) = self.pieces.get(at.piece) else {
            self.pieces.push(Arc::from([entry]));
            return;
        };
        let mut entries = piece.to_vec();
        entries.insert(at.entry, entry);
        if entries.len() <= 2 * PIECE {
            self.pieces[at.piece] = entries.into();
            return;
        }
        let second = entries.split_off(PIECE);
        self.pieces[at.piece] = entries.into();
        self.pieces.insert(at.piece + 1, second.into());
        self.pieces.shrink_to_fit();
    }

    pub fn remove(&mut self, at: At) {
        let mut entries = self.pieces[at.piece].to_vec();
        entries.remove(at.entry);
        if !entries.is_empty() {
            self.pieces[at.piece] = entries.into();
            return;
        }
        self.pieces.remove(at.piece);
        self.pieces.shrink_to_fit();
    }
}

/// Compares entries, however they came to be cut into pieces.
impl PartialEq for DirEntries {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for DirEntries {}

/// Compares an entry with a name in Git's order: by bytes, with a slash behind the name of a directory.
pub(crate) fn compare(entry: &DirEntry, name: &[u8], is_dir: bool) -> Ordering {
    let own = entry.name.as_bytes();
    let common = own.len().min(name.len());
    let next = |name: &[u8], is_dir: bool| name.get(common).copied().or(is_dir.then_some(b'/'));
    own[..common].cmp(&name[..common]).then_with(|| next(own, entry.node.is_dir()).cmp(&next(name, is_dir)))
}

// The names of a tree's entries.

/// Interns the name of an entry. The names of our own files recur in every project, and are kept once.
pub(crate) fn intern(name: &str) -> SmolStr {
    FREQUENT_NAMES.get(name).map_or_else(|| name.into(), SmolStr::clone)
}

/// The path of a file; `None` where its name was put into the tree by hand and no request can spell it.
pub(crate) fn addressable(path: &str) -> Option<RepoPath> {
    RepoPath::parse(path).ok().filter(|parsed| parsed.as_str() == path)
}

static FREQUENT_NAMES: LazyLock<HashSet<SmolStr>> = LazyLock::new(|| {
    use wire::*;
    let own_dirs = [ACTIVE_DIR, PENDING_DIR, SUPERSEDED_DIR, VETOED_DIR, HISTORY_DIR];
    let usual_dirs = ["http", "https", "80", "443", "releases", "tag"];
    let mut names: HashSet<SmolStr> = own_dirs.into_iter().chain(usual_dirs).map(SmolStr::from).collect();
    let metadata = format!("{SIGNERS_FILE}{METADATA_SUFFIX}");
    let veto = format!("{SIGNERS_FILE}{VETO_SUFFIX}");
    let revocation = format!("{INDEX_FILE}{REVOCATION_SUFFIX}");
    let suffixes = [
        "", AGREEMENT_SUFFIX, EARLIER_OBJECTIONS_SUFFIX, OBJECTIONS_SUFFIX, OTHER_FORMATS_SUFFIX,
        REBUILDS_SUFFIX, REGISTRANT_SUFFIX, REGISTRATION_SUFFIX, REQUEST_SUFFIX, SIGNATURES_SUFFIX,
        SIGNERS_COPY_SUFFIX, WITHDRAWAL_SUFFIX,
    ];
    // Not all of these exist. That costs some kilobytes, once.
    for file in [SIGNERS_FILE, &metadata, &veto, VETO_FILE, INDEX_FILE, &revocation] {
        for suffix in suffixes {
            for ending in ["", PENDING_SUFFIX, REVOKED_SUFFIX] {
                names.insert(format!("{file}{suffix}{ending}").into());
            }
        }
    }
    names
});
