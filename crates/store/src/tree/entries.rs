//! The entries of a directory, in pieces that its versions share: a change in a directory of thousands copies one piece.

use std::{cmp::Ordering, sync::Arc};

use smallvec::SmallVec;

use crate::tree::{DirEntry, Node};

/// A piece grows to twice this before it is split.
const PIECE: usize = 64;

/// In Git's order, each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries {
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

impl Entries {
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

    pub(crate) fn locate(&self, name: &str, is_dir: bool) -> Result<At, At> {
        let begins_before = |piece: &Arc<[DirEntry]>| compare(&piece[0], name.as_bytes(), is_dir).is_le();
        let piece = self.pieces.partition_point(begins_before).saturating_sub(1);
        let entries = self.pieces.get(piece).map_or(&[][..], |piece| piece);
        let found = entries.binary_search_by(|entry| compare(entry, name.as_bytes(), is_dir));
        found.map(|entry| At { piece, entry }).map_err(|entry| At { piece, entry })
    }

    pub(crate) fn node(&self, at: At) -> &Node {
        &self.pieces[at.piece][at.entry].node
    }

    pub(crate) fn replace(&mut self, at: At, node: Node) {
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
impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Entries {}

/// Git's order: by bytes, with a slash behind the name of a directory.
fn compare(entry: &DirEntry, name: &[u8], is_dir: bool) -> Ordering {
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
        DirEntry { name: name.into(), node: Node::File(ObjectId::null(HashKind::Sha1)) }
    }

    fn names(entries: &Entries) -> Vec<&str> {
        entries.iter().map(|entry| &*entry.name).collect()
    }

    #[test]
    fn thousands_of_entries_stay_in_order_while_they_come_and_go() {
        let mut entries = Entries::default();
        // A step that shares no factor with the number visits each once.
        let visit = || (0..5_000_u32).map(|i| format!("{:05}", i * 1_777 % 5_000));
        for name in visit() {
            let at = entries.locate(&name, false).unwrap_err();
            entries.insert(at, entry(&name));
        }
        assert_eq!(names(&entries).len(), 5_000);
        assert!(names(&entries).is_sorted());
        let whole = Entries::new(entries.iter().cloned().collect()).unwrap();
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
        let old = Entries::new((0..1_000).map(|i| entry(&format!("{i:04}"))).collect()).unwrap();
        let mut new = old.clone();
        let at = new.locate("0500", false).unwrap();
        new.remove(at);
        assert_eq!((old.iter().count(), new.iter().count()), (1_000, 999));
        let shared = old.pieces.iter().zip(&new.pieces).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert_eq!(shared, old.pieces.len() - 1);
    }

    #[test]
    fn what_is_out_of_order_is_refused() {
        assert!(Entries::new(vec![entry("b"), entry("a")]).is_none());
        assert!(Entries::new(vec![entry("a"), entry("a")]).is_none());
    }
}
