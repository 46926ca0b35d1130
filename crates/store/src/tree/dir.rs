//! A directory, and its entries in pieces that its versions share: a change in a directory of thousands copies one piece.

use std::{cmp::Ordering, sync::Arc};

use countersign_core::values::path::{RepoPath, Segments};
use gix::{ObjectId, hash::Kind as HashKind, objs::tree::EntryKind};
use smallvec::SmallVec;
use smol_str::SmolStr;

/// A piece grows to twice this before it is split.
const PIECE: usize = 64;

/// A directory: the id of its Git tree, and its entries in Git's order.
#[derive(Debug, PartialEq, Eq)]
pub struct Dir {
    pub(crate) id: ObjectId,
    pub(crate) entries: DirEntries,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirEntry {
    /// Short ones lie in the entry itself: a read compares names, and waits for memory at each that lies elsewhere.
    pub(crate) name: SmolStr,
    pub(crate) node: TreeNode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeNode {
    File(ObjectId),
    /// With its id, which is here as well: the writer of a directory of thousands needs the ids of all, and would wait for
    /// memory at each that lies elsewhere.
    Dir(ObjectId, Arc<Dir>),
    /// Boxed, since there should be none.
    Foreign(Box<Foreign>),
}

/// A link, an executable or a submodule, which somebody else put into the tree. It is kept, and never looked into:
/// following a link would leave the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) kind: EntryKind,
    pub(crate) id: ObjectId,
}

/// In Git's order, each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirEntries {
    /// None is empty. Nearly always it is one, which then lies here and not one step further away. Never with room to
    /// spare: with a million files, that is what fills the memory.
    pieces: SmallVec<[Arc<[DirEntry]>; 1]>,
}

/// Where an entry is, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    piece: usize,
    entry: usize,
}

impl Dir {
    pub(crate) fn empty() -> Arc<Self> {
        Arc::new(Self { id: ObjectId::empty_tree(HashKind::Sha1), entries: DirEntries::default() })
    }

    /// A directory as it was stored; `None` where the entries are not in Git's order, each once.
    pub(crate) fn from_stored(id: ObjectId, entries: Vec<DirEntry>) -> Option<Arc<Self>> {
        Some(Arc::new(Self { id, entries: DirEntries::new(entries)? }))
    }

    pub(crate) fn find(&self, path: &RepoPath) -> Option<&TreeNode> {
        let mut segments = path.segments();
        let last = segments.next_back()?;
        segments.try_fold(self, |dir, name| dir.subdir(name).map(|dir| &**dir))?.get(last)
    }

    /// The file with this relative path in the deepest directory that has one, of those that lead to `path` and `path`
    /// itself.
    pub(crate) fn find_nearest(&self, path: &RepoPath, relative: [&str; 2]) -> Option<ObjectId> {
        self.find_below(path.segments(), relative)
    }

    /// The deepest comes first: it is most often one of the last few.
    fn find_below(&self, mut segments: Segments<'_>, relative: [&str; 2]) -> Option<ObjectId> {
        let dir = self.subdir(segments.next()?)?;
        let [inner, file] = relative;
        dir.find_below(segments, relative).or_else(|| match dir.subdir(inner)?.get(file)? {
            TreeNode::File(id) => Some(*id),
            TreeNode::Dir(..) | TreeNode::Foreign(_) => None,
        })
    }

    /// Calls `visit` with the path and content of every file below, in the order of the paths. `prefix` is what stands
    /// before each path: empty, or a directory and its slash.
    pub(crate) fn walk(&self, prefix: &mut String, visit: &mut dyn FnMut(&str, ObjectId)) {
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

    pub(crate) fn subdir(&self, name: &str) -> Option<&Arc<Dir>> {
        match self.entries.node(self.entries.locate(name, true).ok()?) {
            TreeNode::Dir(_, dir) => Some(dir),
            TreeNode::File(_) | TreeNode::Foreign(_) => None,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&TreeNode> {
        let at = self.entries.locate(name, false).or_else(|_| self.entries.locate(name, true)).ok()?;
        Some(self.entries.node(at))
    }
}

impl DirEntry {
    /// How many bytes of its directory it takes.
    pub(crate) fn encoded_len(&self) -> usize {
        let (kind, id) = self.node.kind_and_id();
        kind.as_octal_str().len() + self.name.len() + id.as_slice().len() + 2
    }
}

impl TreeNode {
    pub(crate) fn of(dir: Arc<Dir>) -> Self {
        Self::Dir(dir.id, dir)
    }

    fn kind_and_id(&self) -> (EntryKind, &ObjectId) {
        match self {
            TreeNode::File(id) => (EntryKind::Blob, id),
            TreeNode::Dir(id, _) => (EntryKind::Tree, id),
            TreeNode::Foreign(foreign) => (foreign.kind, &foreign.id),
        }
    }

    pub(crate) fn is_dir(&self) -> bool {
        matches!(self, TreeNode::Dir(..))
    }
}

impl DirEntries {
    /// `None` where they are not in Git's order, each once.
    pub(crate) fn new(entries: Vec<DirEntry>) -> Option<Self> {
        let sorted = entries.is_sorted_by(|a, b| compare(a, b.name.as_bytes(), b.node.is_dir()).is_lt());
        let pieces = entries.chunks(PIECE).map(Arc::from).collect();
        sorted.then_some(Self { pieces })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &DirEntry> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// The bytes of the Git tree with these entries.
    pub(crate) fn encode(&self) -> Vec<u8> {
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

    pub(crate) fn locate(&self, name: &str, is_dir: bool) -> Result<At, At> {
        let begins_before = |piece: &Arc<[DirEntry]>| compare(&piece[0], name.as_bytes(), is_dir).is_le();
        let piece = self.pieces.partition_point(begins_before).saturating_sub(1);
        let entries = self.pieces.get(piece).map_or(&[][..], |piece| piece);
        let found = entries.binary_search_by(|entry| compare(entry, name.as_bytes(), is_dir));
        found.map(|entry| At { piece, entry }).map_err(|entry| At { piece, entry })
    }

    pub(crate) fn node(&self, at: At) -> &TreeNode {
        &self.pieces[at.piece][at.entry].node
    }

    pub(crate) fn replace(&mut self, at: At, node: TreeNode) {
        let mut entries = self.pieces[at.piece].to_vec();
        entries[at.entry].node = node;
        self.pieces[at.piece] = entries.into();
    }

    pub(crate) fn insert(&mut self, at: At, entry: DirEntry) {
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

    pub(crate) fn remove(&mut self, at: At) {
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

/// However they came to be cut into pieces.
impl PartialEq for DirEntries {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for DirEntries {}

/// Git's order: by bytes, with a slash behind the name of a directory.
pub(crate) fn compare(entry: &DirEntry, name: &[u8], is_dir: bool) -> Ordering {
    let own = entry.name.as_bytes();
    let common = own.len().min(name.len());
    let next = |name: &[u8], is_dir: bool| name.get(common).copied().or(is_dir.then_some(b'/'));
    own[..common].cmp(&name[..common]).then_with(|| next(own, entry.node.is_dir()).cmp(&next(name, is_dir)))
}

#[cfg(test)]
mod tests {
    use gix::{ObjectId, hash::Kind as HashKind};

    use super::*;

    fn entry(name: &str) -> DirEntry {
        DirEntry { name: name.into(), node: TreeNode::File(ObjectId::null(HashKind::Sha1)) }
    }

    fn names(entries: &DirEntries) -> Vec<&str> {
        entries.iter().map(|entry| &*entry.name).collect()
    }

    #[test]
    fn thousands_of_entries_stay_in_order_while_they_come_and_go() {
        let mut entries = DirEntries::default();
        // A step that shares no factor with the number visits each once.
        let visit = || (0..5_000_u32).map(|i| format!("{:05}", i * 1_777 % 5_000));
        for name in visit() {
            let at = entries.locate(&name, false).unwrap_err();
            entries.insert(at, entry(&name));
        }
        assert_eq!(names(&entries).len(), 5_000);
        assert!(names(&entries).is_sorted());
        let whole = DirEntries::new(entries.iter().cloned().collect()).unwrap();
        assert!(whole.pieces.len() != entries.pieces.len(), "cut otherwise");
        assert_eq!(whole, entries);
        for name in visit().take(4_990) {
            let at = entries.locate(&name, false).unwrap();
            entries.remove(at);
            assert!(entries.locate(&name, false).is_err());
        }
        assert_eq!(names(&entries).len(), 10);
        assert!(entries.pieces.iter().all(|piece| !piece.is_empty()));
    }

    #[test]
    fn a_change_leaves_other_versions_and_other_pieces_alone() {
        let old = DirEntries::new((0..1_000).map(|i| entry(&format!("{i:04}"))).collect()).unwrap();
        let mut new = old.clone();
        let at = new.locate("0500", false).unwrap();
        new.remove(at);
        assert_eq!((old.iter().count(), new.iter().count()), (1_000, 999));
        let shared = old.pieces.iter().zip(&new.pieces).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert_eq!(shared, old.pieces.len() - 1);
    }

    #[test]
    fn what_is_out_of_order_is_refused() {
        assert!(DirEntries::new(vec![entry("b"), entry("a")]).is_none());
        assert!(DirEntries::new(vec![entry("a"), entry("a")]).is_none());
    }
}
