pub(crate) mod index;
mod path_table;
mod trie;
