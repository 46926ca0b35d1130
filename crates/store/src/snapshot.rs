//! The repository at one commit, as decisions and readers see it.

pub(crate) mod files;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod places;
pub(crate) mod trie;
