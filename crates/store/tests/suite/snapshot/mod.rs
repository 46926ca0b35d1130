pub(crate) mod index;
mod places;
mod trie;
