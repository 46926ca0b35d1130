//! Which files are not the same in two versions of a directory. What both share is not looked into.

use std::cmp::Ordering;

use gix::ObjectId;

use super::dir::{Dir, DirEntry, TreeNode, compare};

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
