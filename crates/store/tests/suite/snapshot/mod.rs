mod index;
mod places;
mod trie;
