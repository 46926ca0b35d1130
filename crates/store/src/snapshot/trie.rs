//! A table that versions share, by hashes that are spread evenly: finding one touches a few places in memory, however
//! many there are, and a change copies some kilobytes.

use std::{iter::once, sync::Arc};

use gix::ObjectId;

use crate::objects::spot::Spot;

/// How many bits of the hash one branch uses. With wider branches, most of what a table of 100,000 files takes would be
/// branches that lead to two or three files.
const BITS: u32 = 4;
pub const WIDTH: usize = 1 << BITS;
/// The most files in a leaf; one with more is split. So many lie close together, and the hash says about where among
/// them one is.
const MAX_LEAF: usize = 64;
const MAX_DEPTH: u32 = u64::BITS / BITS;

/// A file, by the hash of its path. In this order of fields it takes no more room than they do.
#[derive(Debug, Clone)]
pub struct TableEntry {
    pub hash: u64,
    pub spot: Spot,
    /// Tells files apart whose hashes are the same, by chance.
    pub check: u32,
    pub id: ObjectId,
}

#[derive(Debug, Clone)]
pub enum Node {
    /// Files, sorted by hash and check.
    Leaf(Arc<[TableEntry]>),
    /// Branches by the next bits of the hash. It stays when little is left below: files rarely go.
    Branch(Arc<[Node; WIDTH]>),
}

impl Node {
    pub fn new(mut entries: Vec<TableEntry>) -> Self {
        entries.sort_unstable_by_key(TableEntry::key);
        Self::build(&entries, 0)
    }

    /// The files with this hash: none, or one, or hardly ever more.
    pub fn find(&self, hash: u64) -> impl Iterator<Item = &TableEntry> {
        let (mut node, mut depth) = (self, 0);
        let leaf = loop {
            match node {
                Self::Leaf(leaf) => break leaf,
                Self::Branch(nodes) => node = &nodes[child(hash, depth)],
            }
            depth += 1;
        };
        leaf[position(leaf, hash, depth)..].iter().take_while(move |entry| entry.hash == hash)
    }

    /// Inserts a file, in the place of one with the same hash and check, if there is one.
    pub fn insert(&mut self, entry: TableEntry) {
        self.insert_at(0, entry);
    }

    pub fn remove(&mut self, hash: u64, check: u32) {
        self.remove_at(0, (hash, check));
    }

    fn build(sorted: &[TableEntry], depth: u32) -> Self {
        if sorted.len() <= MAX_LEAF || depth == MAX_DEPTH {
            return Self::Leaf(sorted.into());
        }
        let mut rest = sorted;
        Self::Branch(Arc::new(std::array::from_fn(|at| {
            let own = rest.partition_point(|entry| child(entry.hash, depth) <= at);
            let (own, others) = rest.split_at(own);
            rest = others;
            Self::build(own, depth + 1)
        })))
    }

    fn insert_at(&mut self, depth: u32, entry: TableEntry) {
        let leaf = match self {
            Self::Branch(nodes) => {
                return Arc::make_mut(nodes)[child(entry.hash, depth)].insert_at(depth + 1, entry);
            }
            Self::Leaf(leaf) => leaf,
        };
        let (begin, end) = match locate(leaf, depth, entry.key()) {
            Ok(at) => (at, at + 1),
            Err(at) => (at, at),
        };
        let (before, behind) = (leaf[..begin].iter().cloned(), leaf[end..].iter().cloned());
        let leaf: Arc<[TableEntry]> = before.chain(once(entry)).chain(behind).collect();
        *self = if leaf.len() > MAX_LEAF { Self::build(&leaf, depth) } else { Self::Leaf(leaf) };
    }

    fn remove_at(&mut self, depth: u32, key: (u64, u32)) {
        match self {
            Self::Branch(nodes) => Arc::make_mut(nodes)[child(key.0, depth)].remove_at(depth + 1, key),
            Self::Leaf(leaf) => {
                if let Ok(at) = locate(leaf, depth, key) {
                    *leaf = leaf[..at].iter().chain(&leaf[at + 1..]).cloned().collect();
                }
            }
        }
    }
}

impl TableEntry {
    fn key(&self) -> (u64, u32) {
        (self.hash, self.check)
    }
}

fn child(hash: u64, depth: u32) -> usize {
    hash.checked_shl(BITS * depth).map_or(0, |rest| (rest >> (u64::BITS - BITS)) as usize)
}

fn locate(leaf: &[TableEntry], depth: u32, key: (u64, u32)) -> Result<usize, usize> {
    let begin = position(leaf, key.0, depth);
    let found = leaf[begin..].binary_search_by_key(&key, TableEntry::key);
    found.map(|at| begin + at).map_err(|at| begin + at)
}

/// The position of the first file with this hash or a larger one. Looked for where it should be if hashes were spread
/// perfectly; it is a few steps from there.
fn position(leaf: &[TableEntry], hash: u64, depth: u32) -> usize {
    let rest = hash.checked_shl(BITS * depth).unwrap_or_default();
    let mut at = ((u128::from(rest) * leaf.len() as u128) >> u64::BITS) as usize;
    while leaf.get(at).is_some_and(|entry| entry.hash < hash) {
        at += 1;
    }
    while at > 0 && leaf[at - 1].hash >= hash {
        at -= 1;
    }
    at
}
