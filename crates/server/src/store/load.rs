//! Reading a whole tree into memory, at start.

use std::{str, sync::Arc};

use gix::{
    ObjectId,
    hash::Kind as HashKind,
    objs::{Kind, TreeRefIter, tree::EntryKind},
};

use super::{
    StoreError,
    objects::Objects,
    tree::{Dir, DirEntry, Foreign, Node, intern},
};

/// Deeper than any path that we store; a tree made by hand must not exhaust the stack.
const MAX_DEPTH: usize = 64;

pub(super) fn load_tree(objects: &Objects, id: ObjectId) -> Result<Arc<Dir>, StoreError> {
    if id == ObjectId::empty_tree(HashKind::Sha1) {
        return Ok(Dir::empty());
    }
    load_dir(objects, id, &mut String::new(), 0)
}

fn load_dir(
    objects: &Objects,
    id: ObjectId,
    path: &mut String,
    depth: usize,
) -> Result<Arc<Dir>, StoreError> {
    if depth > MAX_DEPTH {
        return Err(StoreError::corrupt(path, "it lies too deep"));
    }
    let bytes = objects.read(&id, Kind::Tree)?;
    let mut entries = Vec::new();
    let length = path.len();
    for entry in TreeRefIter::from_bytes(&bytes, HashKind::Sha1) {
        let entry = entry.map_err(|error| StoreError::corrupt(id, error))?;
        let name = str::from_utf8(entry.filename)
            .map_err(|_| StoreError::corrupt(format!("{path}{}", entry.filename), "the name is not UTF-8"))?;
        path.push_str(name);
        let node = match entry.mode.kind() {
            EntryKind::Blob => Node::File(entry.oid.to_owned()),
            EntryKind::Tree => {
                path.push('/');
                Node::Dir(load_dir(objects, entry.oid.to_owned(), path, depth + 1)?)
            }
            kind @ (EntryKind::Link | EntryKind::Commit | EntryKind::BlobExecutable) => {
                tracing::warn!(path, "not a plain file, and none of ours: it is not served");
                Node::Foreign(Box::new(Foreign { kind, id: entry.oid.to_owned() }))
            }
        };
        path.truncate(length);
        entries.push(DirEntry { name: intern(name), node });
    }
    Dir::from_stored(id, entries).ok_or_else(|| StoreError::corrupt(id, "its entries are not in order"))
}
