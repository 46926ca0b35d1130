//! Whether one tree continues another, from hashes of complete subtrees: what tiles of a log hold.

use std::ops::Range;

use crate::log::tree::{BadProof, Hash, TreeHead, empty_root, node_hash};

/// A subtree of 2^`height` leaves, the `index`-th of this height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subtree {
    pub height: u32,
    pub index: u64,
}

/// A tree that grows at its right edge, as the hashes of the complete subtrees that make it up, the largest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactTree {
    size: u64,
    peaks: Vec<Hash>,
}

/// The fewest complete subtrees that cover these leaves, from left to right.
pub fn subtrees(leaves: Range<u64>) -> Vec<Subtree> {
    let Range { start: mut begin, end } = leaves;
    let mut found = Vec::new();
    while begin < end {
        // As large as it can begin here, and as fits.
        let height = begin.trailing_zeros().min((end - begin).ilog2());
        found.push(Subtree { height, index: begin >> height });
        begin += 1 << height;
    }
    found
}

impl CompactTree {
    /// A tree by the hashes of `subtrees(0..head.size)`, which must give its root.
    pub fn open(head: &TreeHead, hashes: &[Hash]) -> Result<Self, BadProof> {
        let mut tree = Self::default();
        tree.append(head.size, hashes)?;
        if tree.root() == head.root { Ok(tree) } else { Err(BadProof) }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn push_leaf(&mut self, hash: Hash) {
        self.push(0, hash);
    }

    /// Adds the hashes of `subtrees(self.size()..size)`.
    pub fn append(&mut self, size: u64, hashes: &[Hash]) -> Result<(), BadProof> {
        let parts = subtrees(self.size..size.max(self.size));
        if parts.len() != hashes.len() || size < self.size {
            return Err(BadProof);
        }
        parts.iter().zip(hashes).for_each(|(part, hash)| self.push(part.height, *hash));
        Ok(())
    }

    pub fn root(&self) -> Hash {
        fold_subtrees(&self.peaks)
    }

    /// A subtree that begins where the tree ends. Two neighbours of one height become one of the next.
    fn push(&mut self, height: u32, mut hash: Hash) {
        let mut full = self.size >> height;
        while full % 2 == 1 {
            let left = self.peaks.pop().expect("each bit of the size has its peak");
            hash = node_hash(&left, &hash);
            full >>= 1;
        }
        self.peaks.push(hash);
        self.size += 1 << height;
    }
}

/// The root of a range of leaves that begins where a subtree of at least its length does, from the hashes of its
/// [`subtrees`].
pub fn fold_subtrees(hashes: &[Hash]) -> Hash {
    let mut from_right = hashes.iter().rev();
    let last = from_right.next().copied();
    last.map_or_else(empty_root, |last| from_right.fold(last, |right, left| node_hash(left, &right)))
}

/// Checks that the tree `new` begins with the tree `old`: the same hashes, `old_hashes` of `subtrees(0..old.size)`, give
/// both roots, the newer one together with `more` of `subtrees(old.size..new.size)`.
pub fn verify_continuation(
    old: &TreeHead,
    new: &TreeHead,
    old_hashes: &[Hash],
    more: &[Hash],
) -> Result<(), BadProof> {
    let mut tree = CompactTree::open(old, old_hashes)?;
    tree.append(new.size, more)?;
    if tree.root() == new.root { Ok(()) } else { Err(BadProof) }
}
