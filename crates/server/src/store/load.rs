//! Reading a tree into memory: the whole of it at start, and what is new in it when a history is checked.

use std::{str, sync::Arc};

use gix::{
    ObjectId,
    hash::Kind as HashKind,
    objs::{Kind, TreeRefIter, tree::EntryKind},
};

use super::{
    StoreError,
    objects::Objects,
    pack::{common_prefix, common_suffix},
    tree::{Dir, DirEntry, Foreign, Node, intern},
};

/// Deeper than any path that we store; a tree made by hand must not exhaust the stack.
const MAX_DEPTH: usize = 64;
/// Beyond this size, a directory is read as a difference to the version before.
const WIDE_BYTES: usize = 256;

pub(super) fn load_tree(objects: &Objects, id: ObjectId) -> Result<Arc<Dir>, StoreError> {
    if id == ObjectId::empty_tree(HashKind::Sha1) {
        return Ok(Dir::empty());
    }
    load_dir(objects, id, None, &mut Place::default())
}

/// The same where most of the tree is known already, with the directories that are not written as we write them.
pub(super) fn load_next(
    objects: &Objects,
    id: ObjectId,
    previous: &Arc<Dir>,
) -> Result<(Arc<Dir>, Vec<String>), StoreError> {
    if id == ObjectId::empty_tree(HashKind::Sha1) {
        return Ok((Dir::empty(), Vec::new()));
    }
    let mut place = Place { odd: Some(Vec::new()), ..Place::default() };
    let root = load_dir(objects, id, Some(previous), &mut place)?;
    Ok((root, place.odd.unwrap_or_default()))
}

/// Where in the tree we are.
#[derive(Default)]
struct Place {
    path: String,
    depth: usize,
    /// Directories whose bytes are another spelling of their entries, if that matters.
    odd: Option<Vec<String>>,
}

fn load_dir(
    objects: &Objects,
    id: ObjectId,
    previous: Option<&Arc<Dir>>,
    place: &mut Place,
) -> Result<Arc<Dir>, StoreError> {
    if let Some(previous) = previous.filter(|previous| previous.id == id) {
        return Ok(Arc::clone(previous));
    }
    if place.depth > MAX_DEPTH {
        return Err(StoreError::corrupt(&place.path, "it lies too deep"));
    }
    let bytes = objects.read(&id, Kind::Tree)?;
    if let Some(previous) = previous.filter(|_| bytes.len() > WIDE_BYTES)
        && let Some(dir) = load_difference(objects, (id, &bytes), previous, place)?
    {
        return Ok(dir);
    }
    let entries = read_entries(objects, (id, &bytes), previous, place)?;
    let dir = Dir::from_stored(id, entries);
    let dir = dir.ok_or_else(|| StoreError::corrupt(id, "its entries are not in order"))?;
    if let Some(odd) = &mut place.odd
        && dir.encoded() != bytes
    {
        odd.push(place.path.clone());
    }
    Ok(dir)
}

/// A wide directory mostly stays what it was: what it begins and ends with is not read again, and shared. `None` where
/// that does not give these very bytes.
fn load_difference(
    objects: &Objects,
    (id, bytes): (ObjectId, &[u8]),
    previous: &Arc<Dir>,
    place: &mut Place,
) -> Result<Option<Arc<Dir>>, StoreError> {
    let old = previous.encoded();
    let prefix = common_prefix(&old, bytes);
    let behind = old.len() - common_suffix(&old[prefix..], &bytes[prefix..]);
    let (mut at, mut begin, mut end) = (0, 0, old.len());
    let mut entries = previous.entries.clone();
    for entry in previous.entries.iter() {
        let next = at + entry.encoded_len();
        if next <= prefix {
            begin = next;
        } else if at >= behind {
            end = at;
            break;
        } else if let Ok(gone) = entries.locate(&entry.name, entry.node.is_dir()) {
            entries.remove(gone);
        }
        at = next;
    }
    let middle = &bytes[begin..bytes.len() - (old.len() - end)];
    for entry in read_entries(objects, (id, middle), Some(previous), place)? {
        match entries.locate(&entry.name, entry.node.is_dir()) {
            Ok(_) => return Ok(None),
            Err(at) => entries.insert(at, entry),
        }
    }
    let dir = Dir { id, entries };
    Ok((dir.encoded() == bytes).then(|| Arc::new(dir)))
}

fn read_entries(
    objects: &Objects,
    (id, bytes): (ObjectId, &[u8]),
    previous: Option<&Arc<Dir>>,
    place: &mut Place,
) -> Result<Vec<DirEntry>, StoreError> {
    let mut entries = Vec::new();
    let length = place.path.len();
    for entry in TreeRefIter::from_bytes(bytes, HashKind::Sha1) {
        let entry = entry.map_err(|error| StoreError::corrupt(id, error))?;
        let name = str::from_utf8(entry.filename).map_err(|_| {
            StoreError::corrupt(format!("{}{}", place.path, entry.filename), "the name is not UTF-8")
        })?;
        place.path.push_str(name);
        let node = match entry.mode.kind() {
            EntryKind::Blob => Node::File(entry.oid.to_owned()),
            EntryKind::Tree => {
                place.path.push('/');
                place.depth += 1;
                let known = previous.and_then(|previous| previous.subdir(name));
                let dir = load_dir(objects, entry.oid.to_owned(), known, place)?;
                place.depth -= 1;
                Node::Dir(dir)
            }
            kind @ (EntryKind::Link | EntryKind::Commit | EntryKind::BlobExecutable) => {
                tracing::warn!(path = place.path, "not a plain file, and none of ours: it is not served");
                Node::Foreign(Box::new(Foreign { kind, id: entry.oid.to_owned() }))
            }
        };
        place.path.truncate(length);
        entries.push(DirEntry { name: intern(name), node });
    }
    Ok(entries)
}
