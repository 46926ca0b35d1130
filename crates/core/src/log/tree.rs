//! The Merkle tree of RFC 6962: roots, and proofs that a leaf is in a tree or that a tree continues another.

use std::ops::Range;

use thiserror::Error;

use crate::log::tile::TILE_HEIGHT;
use crate::values::{digest::Sha256, key::decode_padded_base64, key::encode_base64};

pub type Hash = Sha256;

/// A log in memory, to which leaves are only added. It keeps the hash of every complete subtree, some 64 bytes a leaf, so
/// that roots and proofs of all earlier sizes are a matter of a few look-ups.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The hashes: at `levels[height][n]` that of the n-th subtree of 2^height leaves.
    levels: Vec<Vec<Hash>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the proof does not lead to the root")]
pub struct BadProof;

pub fn leaf_hash(data: &[u8]) -> Hash {
    Sha256::of(&[&[0], data].concat())
}

pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut node = [1; 65];
    node[1..33].copy_from_slice(left.as_bytes());
    node[33..].copy_from_slice(right.as_bytes());
    Sha256::of(&node)
}

/// The root of a tree without leaves.
pub fn empty_root() -> Hash {
    Sha256::of(&[])
}

/// Writes a hash in base64, as checkpoints and proofs do.
pub fn write_hash(hash: &Hash) -> String {
    encode_base64(hash.as_bytes())
}

pub fn parse_hash(text: &str) -> Option<Hash> {
    decode_padded_base64(text)?.try_into().ok().map(Hash::from_bytes)
}

impl Tree {
    pub fn len(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u64)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the hash of a leaf, and of the subtrees that it completes.
    pub fn push(&mut self, leaf: Hash) {
        let mut hash = leaf;
        for height in 0.. {
            if height == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let level = &mut self.levels[height];
            level.push(hash);
            match level.as_slice() {
                [.., left, right] if level.len().is_multiple_of(2) => hash = node_hash(left, right),
                _ => return,
            }
        }
    }

    /// Forgets the leaves from `len` on.
    pub fn truncate(&mut self, len: u64) {
        for (height, level) in self.levels.iter_mut().enumerate() {
            level.truncate(usize::try_from(len >> height).unwrap_or(usize::MAX));
        }
        self.levels.retain(|level| !level.is_empty());
    }

    /// The root of the first `size` leaves; `None` if there are not so many.
    pub fn root(&self, size: u64) -> Option<Hash> {
        match size {
            0 => Some(empty_root()),
            _ if size > self.len() => None,
            _ => Some(self.range_root(0, size)),
        }
    }

    /// The proof that the leaf `index` is one of the first `size`: the sibling of the leaf first.
    pub fn inclusion(&self, index: u64, size: u64) -> Option<Vec<Hash>> {
        if index >= size || size > self.len() {
            return None;
        }
        let siblings = inclusion_siblings(index, size).into_iter();
        Some(siblings.map(|leaves| self.range_root(leaves.start, leaves.end)).collect())
    }

    /// The proof that the first `size` leaves begin with the first `old`.
    pub fn consistency(&self, old: u64, size: u64) -> Option<Vec<Hash>> {
        if old > size || size > self.len() {
            return None;
        }
        if old == 0 || old == size {
            return Some(Vec::new());
        }
        let (mut start, mut end, mut proof) = (0, size, Vec::new());
        // Down to the subtree that ends where the old tree ended.
        while end != old {
            let middle = start + split(end - start);
            if old <= middle {
                proof.push(self.range_root(middle, end));
                end = middle;
            } else {
                proof.push(self.range_root(start, middle));
                start = middle;
            }
        }
        // The verifier knows it already if it is the whole old tree.
        if start > 0 {
            proof.push(self.range_root(start, end));
        }
        proof.reverse();
        Some(proof)
    }

    /// Hashes of a level of tiles: level 0 has those of the leaves. `None` if not all of them are complete.
    pub fn tile_hashes(&self, level: usize, range: Range<u64>) -> Option<&[Hash]> {
        let hashes = self.levels.get(level.checked_mul(TILE_HEIGHT as usize)?)?;
        hashes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }

    /// The root of a range that begins where a subtree of at least its length does. It falls into complete subtrees, the
    /// largest first; there are leaves up to `end`.
    fn range_root(&self, start: u64, end: u64) -> Hash {
        let (mut at, mut root) = (end, None);
        while at > start {
            let height = (at - start).trailing_zeros();
            at -= 1 << height;
            let left = self.levels[height as usize][(at >> height) as usize];
            root = Some(root.map_or(left, |right| node_hash(&left, &right)));
        }
        root.unwrap_or_else(empty_root)
    }
}

/// The leaves below each sibling on the way from the leaf `index`, which is below `size`, to the root: that of the leaf
/// first.
pub fn inclusion_siblings(index: u64, size: u64) -> Vec<Range<u64>> {
    let (mut start, mut end, mut siblings) = (0, size, Vec::new());
    while end.saturating_sub(start) > 1 {
        let middle = start + split(end - start);
        if index < middle {
            siblings.push(middle..end);
            end = middle;
        } else {
            siblings.push(start..middle);
            start = middle;
        }
    }
    siblings.reverse();
    siblings
}

/// The largest power of two below `length`, which is at least 2: so many leaves are left of the root.
fn split(length: u64) -> u64 {
    1 << (length - 1).ilog2()
}

/// Checks that `leaf` is the hash at `index` in the tree of this size and root (RFC 9162, 2.1.3.2).
pub fn verify_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: &Hash,
) -> Result<(), BadProof> {
    if index >= size {
        return Err(BadProof);
    }
    // The place of the current subtree in its level, and that of the last one.
    let (mut position, mut last, mut hash) = (index, size - 1, *leaf);
    for sibling in proof {
        if last == 0 {
            return Err(BadProof);
        }
        if position % 2 == 1 || position == last {
            hash = node_hash(sibling, &hash);
            // A last subtree without a right neighbour goes up as it is.
            while position.is_multiple_of(2) && position != 0 {
                (position, last) = (position >> 1, last >> 1);
            }
        } else {
            hash = node_hash(&hash, sibling);
        }
        (position, last) = (position >> 1, last >> 1);
    }
    if last == 0 && hash == *root { Ok(()) } else { Err(BadProof) }
}

/// A tree by its size and root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeHead {
    pub size: u64,
    pub root: Hash,
}

/// Whether the proof shows that the tree `new` begins with another tree than `old`: it leads to the root of `new`, and on
/// the way to another root for the first leaves. Of an old tree that is one complete subtree no proof shows that, because
/// it begins with the root of that tree.
pub fn proves_fork(old: &TreeHead, new: &TreeHead, proof: &[Hash]) -> bool {
    let is_part = 0 < old.size && old.size < new.size;
    let roots = if is_part { follow_consistency(old, new.size, proof) } else { None };
    roots.is_some_and(|roots| roots.new == new.root && roots.old != old.root)
}

/// Checks that the tree `new` begins with the tree `old` (RFC 9162, 2.1.4.2).
pub fn verify_consistency(old: &TreeHead, new: &TreeHead, proof: &[Hash]) -> Result<(), BadProof> {
    let holds = |condition: bool| if condition { Ok(()) } else { Err(BadProof) };
    if old.size == 0 {
        // Every tree continues the empty one.
        let is_empty = new.size > 0 || new.root == empty_root();
        return holds(proof.is_empty() && old.root == empty_root() && is_empty);
    }
    if old.size == new.size {
        return holds(proof.is_empty() && old.root == new.root);
    }
    if old.size > new.size {
        return Err(BadProof);
    }
    let roots = follow_consistency(old, new.size, proof).ok_or(BadProof)?;
    holds(roots.old == old.root && roots.new == new.root)
}

/// The roots that a consistency proof leads to.
struct ProvenRoots {
    old: Hash,
    new: Hash,
}

/// Follows a consistency proof from `old`, which is smaller than `new_size`, and not empty. `None` if the proof does
/// not have the form that these sizes need.
fn follow_consistency(old: &TreeHead, new_size: u64, proof: &[Hash]) -> Option<ProvenRoots> {
    // An old tree that is one complete subtree is where the proof begins, and not in it.
    let (first, rest) = match proof.split_first() {
        _ if old.size.is_power_of_two() => (old.root, proof),
        Some((first, rest)) => (*first, rest),
        None => return None,
    };
    let (mut position, mut last) = (old.size - 1, new_size - 1);
    while position % 2 == 1 {
        (position, last) = (position >> 1, last >> 1);
    }
    let (mut old_root, mut new_root) = (first, first);
    for sibling in rest {
        if last == 0 {
            return None;
        }
        if position % 2 == 1 || position == last {
            (old_root, new_root) = (node_hash(sibling, &old_root), node_hash(sibling, &new_root));
            while position.is_multiple_of(2) && position != 0 {
                (position, last) = (position >> 1, last >> 1);
            }
        } else {
            new_root = node_hash(&new_root, sibling);
        }
        (position, last) = (position >> 1, last >> 1);
    }
    (last == 0).then_some(ProvenRoots { old: old_root, new: new_root })
}

// Whether one tree continues another, from hashes of complete subtrees: what tiles of a log hold.

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
