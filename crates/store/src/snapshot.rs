//! The repository at one commit, as decisions and readers see it.

pub mod head;
pub mod index;
pub mod path_table;
pub mod tree;
pub mod trie;
