//! Changing a tree: only the directories on the paths of the change are made anew.

use std::{cmp::Ordering, sync::Arc};

use countersign_core::values::path::RepoPath;
use gix::{ObjectId, objs::Kind};

use crate::snapshot::tree::dir::{At, Dir, DirEntries, DirEntry, TreeNode, compare, intern};
use crate::{error::StoreError, objects::hash};

/// The bytes of a directory that a change made anew.
#[derive(Debug)]
pub struct EncodedTree {
    /// The path of the directory; empty for the root. The next version of the same directory will resemble it.
    pub path: String,
    pub id: ObjectId,
    pub bytes: Vec<u8>,
    /// How long a difference to the version before is, about.
    pub changed: usize,
}

/// What a difference takes for each entry that is another one: a mode, an id, and instructions around them.
const CHANGED_ENTRY_BYTES: usize = 64;

/// A file's new content, or `None` where it goes away.
pub type Edit<'a> = (&'a RepoPath, Option<ObjectId>);

/// The tree after `edits`, which must be sorted by path, and every directory that is new in it. A file cannot become a
/// directory, nor a directory a file (D6).
pub fn apply(root: &Arc<Dir>, edits: &[Edit<'_>]) -> Result<(Arc<Dir>, Vec<EncodedTree>), StoreError> {
    let mut trees = Vec::new();
    let new = edit_dir(Some(root), 0, edits, &mut trees)?;
    Ok((new.unwrap_or_else(Dir::empty), trees))
}

/// The directory `old` after `edits`; `None` where nothing is left of it. The paths of `edits` all begin with the path
/// of this directory, which is `at` bytes long with its slash.
fn edit_dir(
    old: Option<&Arc<Dir>>,
    at: usize,
    edits: &[Edit<'_>],
    trees: &mut Vec<EncodedTree>,
) -> Result<Option<Arc<Dir>>, StoreError> {
    let old_entries = old.map(|dir| dir.entries.clone()).unwrap_or_default();
    let mut entries = old_entries.clone();
    let mut changed = 0;
    let mut rest = edits;
    while let Some(&(path, blob)) = rest.first() {
        let Some(length) = path.as_str()[at..].find('/') else {
            let name = &path.as_str()[at..];
            if edit_file(&mut entries, name, blob, path)? {
                changed += name.len() + CHANGED_ENTRY_BYTES;
            }
            rest = &rest[1..];
            continue;
        };
        let name = &path.as_str()[at..at + length];
        let below_at = at + length + 1;
        // Everything below one directory is adjacent, because the edits are sorted.
        let below =
            rest.partition_point(|(other, _)| other.as_str()[..].starts_with(&path.as_str()[..below_at]));
        let (inside, others) = rest.split_at(below);
        let writes = inside.iter().any(|(_, blob)| blob.is_some());
        // Looked up in `old` too: deleting a file does not make room for a directory in the same change.
        if writes && (entries.locate(name, false).is_ok() || old_entries.locate(name, false).is_ok()) {
            return Err(StoreError::Conflict { path: path.clone() });
        }
        let slot = entries.locate(name, true);
        let dir = slot.ok().and_then(|slot| entries.node(slot).dir());
        let dir = edit_dir(dir, below_at, inside, trees)?;
        if set(&mut entries, slot, name, dir.map(TreeNode::of)) {
            changed += name.len() + CHANGED_ENTRY_BYTES;
        }
        rest = others;
    }
    if changed == 0 {
        return Ok(old.cloned());
    }
    if entries.is_empty() && at > 0 {
        return Ok(None);
    }
    let here = edits[0].0;
    let bytes = entries.encode();
    let id = hash(Kind::Tree, &bytes).ok_or_else(|| StoreError::collision(&here.as_str()[..at]))?;
    trees.push(EncodedTree { path: here.as_str()[..at].to_owned(), id, bytes, changed });
    Ok(Some(Arc::new(Dir { id, entries })))
}

/// Edits a file, and returns whether it is another one afterwards.
fn edit_file(
    entries: &mut DirEntries,
    name: &str,
    blob: Option<ObjectId>,
    path: &RepoPath,
) -> Result<bool, StoreError> {
    let at = entries.locate(name, false);
    let is_foreign = at.is_ok_and(|at| matches!(entries.node(at), TreeNode::Foreign(_)));
    if is_foreign || entries.locate(name, true).is_ok() {
        return Err(StoreError::Conflict { path: path.clone() });
    }
    Ok(set(entries, at, name, blob.map(TreeNode::File)))
}

/// Puts `node` where `name` was looked for, or takes away what is there. Whether that changes anything.
fn set(entries: &mut DirEntries, at: Result<At, At>, name: &str, node: Option<TreeNode>) -> bool {
    match (at, node) {
        (Ok(at), Some(node)) if entries.node(at).is_same(&node) => return false,
        (Ok(at), Some(node)) => entries.replace(at, node),
        (Ok(at), None) => entries.remove(at),
        (Err(at), Some(node)) => entries.insert(at, DirEntry { name: intern(name), node }),
        (Err(_), None) => return false,
    }
    true
}

// Which files are not the same in two versions of a directory. What both share is not looked into.

/// Calls `visit` with the path of every file that one of the two has and the other has not, or has otherwise.
pub(crate) fn walk_changes(old: &Dir, new: &Dir, visit: &mut dyn FnMut(&str)) {
    if old.id != new.id {
        walk(Some(old), Some(new), &mut String::new(), visit);
    }
}

fn walk(old: Option<&Dir>, new: Option<&Dir>, path: &mut String, visit: &mut dyn FnMut(&str)) {
    let mut before = old.into_iter().flat_map(|dir| dir.entries.iter()).peekable();
    let mut after = new.into_iter().flat_map(|dir| dir.entries.iter()).peekable();
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(left), Some(right)) => compare(left, right.name.as_bytes(), right.node.is_dir()),
        };
        let left = if order.is_le() { before.next() } else { None };
        let right = if order.is_ge() { after.next() } else { None };
        walk_entry(left, right, path, visit);
    }
}

/// Entries of the same name, both files or both directories, or one of them alone.
fn walk_entry(
    old: Option<&DirEntry>,
    new: Option<&DirEntry>,
    path: &mut String,
    visit: &mut dyn FnMut(&str),
) {
    let Some(entry) = new.or(old) else { return };
    let length = path.len();
    match (dir_of(old), dir_of(new)) {
        (None, None) if old.map(|old| &old.node) == new.map(|new| &new.node) => {}
        (None, None) => {
            path.push_str(&entry.name);
            visit(path);
        }
        (Some((old, _)), Some((new, _))) if old == new => {}
        (old, new) => {
            path.push_str(&entry.name);
            path.push('/');
            walk(old.map(|(_, dir)| dir), new.map(|(_, dir)| dir), path, visit);
        }
    }
    path.truncate(length);
}

fn dir_of(entry: Option<&DirEntry>) -> Option<(&ObjectId, &Dir)> {
    match &entry?.node {
        TreeNode::Dir(id, dir) => Some((id, dir)),
        TreeNode::File(_) | TreeNode::Foreign(_) => None,
    }
}
