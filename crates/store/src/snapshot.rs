//! The repository at one commit, as decisions and readers see it.

pub mod head;
pub mod index;
pub mod places;
pub mod tree;
pub mod trie;
