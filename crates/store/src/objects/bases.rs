//! What one reader has read lately. The next version of a directory or a file is often a difference to the one before: a
//! reader that goes through the history undoes one difference instead of up to 50.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use gix::{objs::Kind, odb::pack::cache::DecodeEntry};

/// Objects by key. What was not asked for lately is forgotten first.
#[derive(Debug)]
pub(crate) struct RecentObjects<K> {
    young: HashMap<K, RecentObject>,
    old: HashMap<K, RecentObject>,
    /// Bytes of the young objects. They become the old ones when they have half of all.
    bytes: usize,
    max_bytes: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct RecentObject {
    kind: Kind,
    packed_bytes: usize,
    content: Arc<[u8]>,
}

/// Objects by the number of a pack and the place in it.
pub(crate) type DeltaBases = RecentObjects<(u64, u64)>;

/// The bases that lie in one pack.
#[derive(Debug)]
pub(crate) struct BasesInPack<'a> {
    pub(crate) bases: &'a mut DeltaBases,
    /// Our number of the pack. Those of gix are short, and two packs may have the same.
    pub(crate) pack: u64,
}

impl<K: Hash + Eq + Clone> RecentObjects<K> {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), bytes: 0, max_bytes }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<RecentObject> {
        if let Some(object) = self.young.get(key) {
            return Some(object.clone());
        }
        let object = self.old.remove(key)?;
        self.insert(key.clone(), object.clone());
        Some(object)
    }

    pub(crate) fn insert(&mut self, key: K, object: RecentObject) {
        if self.bytes + object.content.len() > self.max_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += object.content.len();
        self.young.insert(key, object);
    }
}

impl RecentObject {
    pub(crate) fn tree(content: Arc<[u8]>) -> Self {
        Self { kind: Kind::Tree, packed_bytes: 0, content }
    }

    pub(crate) fn into_content(self) -> Arc<[u8]> {
        self.content
    }
}

impl DecodeEntry for BasesInPack<'_> {
    fn put(&mut self, _: u32, offset: u64, data: &[u8], kind: Kind, packed_bytes: usize) {
        let object = RecentObject { kind, packed_bytes, content: data.into() };
        self.bases.insert((self.pack, offset), object);
    }

    fn get(&mut self, _: u32, offset: u64, out: &mut Vec<u8>) -> Option<(Kind, usize)> {
        let object = self.bases.get(&(self.pack, offset))?;
        out.clear();
        out.extend_from_slice(&object.content);
        Some((object.kind, object.packed_bytes))
    }
}
