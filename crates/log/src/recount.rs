//! The root of a log, counted without the tree: from the hashes of its leaves alone, one after the other. If it differs
//! from the tree's, memory or disk has changed a bit.

use countersign_core::log::tree::{Hash, empty_root, node_hash};

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
