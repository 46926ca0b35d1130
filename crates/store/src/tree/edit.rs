//! Changing a tree: only the directories on the paths of the change are made anew.

use std::sync::Arc;

use countersign_core::values::path::RepoPath;
use gix::ObjectId;

use crate::{
    objects::sums::hash_tree,
    tree::{
        dir::{At, Dir, DirEntries, DirEntry, TreeNode},
        names::intern,
    },
};

/// The bytes of a directory that a change made anew.
#[derive(Debug)]
pub(crate) struct EncodedTree {
    /// Where it lies; empty for the root. The next version of the same directory will resemble it.
    pub(crate) path: String,
    pub(crate) id: ObjectId,
    pub(crate) bytes: Vec<u8>,
}

/// A change cannot become a tree: a file would become a directory, or a directory a file (D6).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict(pub(crate) RepoPath);

/// A file's new content, or `None` where it goes away.
pub(crate) type Edit<'a> = (&'a RepoPath, Option<ObjectId>);

/// The tree after `edits`, which must be sorted by path, and every directory that is new in it.
pub(crate) fn apply(root: &Arc<Dir>, edits: &[Edit<'_>]) -> Result<(Arc<Dir>, Vec<EncodedTree>), Conflict> {
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
) -> Result<Option<Arc<Dir>>, Conflict> {
    let old_entries = old.map(|dir| dir.entries.clone()).unwrap_or_default();
    let mut entries = old_entries.clone();
    let mut changed = false;
    let mut rest = edits;
    while let Some(&(path, blob)) = rest.first() {
        let Some(length) = path.as_str()[at..].find('/') else {
            changed |= edit_file(&mut entries, &path.as_str()[at..], blob, path)?;
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
            return Err(Conflict(path.clone()));
        }
        changed |= edit_subdir(&mut entries, name, |dir| edit_dir(dir, below_at, inside, trees))?;
        rest = others;
    }
    if !changed {
        return Ok(old.cloned());
    }
    if entries.is_empty() && at > 0 {
        return Ok(None);
    }
    let here = edits[0].0;
    let bytes = entries.encode();
    let id = hash_tree(&bytes);
    trees.push(EncodedTree { path: here.as_str()[..at].to_owned(), id, bytes });
    Ok(Some(Arc::new(Dir { id, entries })))
}

fn edit_file(
    entries: &mut DirEntries,
    name: &str,
    blob: Option<ObjectId>,
    path: &RepoPath,
) -> Result<bool, Conflict> {
    let at = entries.locate(name, false);
    let is_foreign = at.is_ok_and(|at| matches!(entries.node(at), TreeNode::Foreign(_)));
    if is_foreign || entries.locate(name, true).is_ok() {
        return Err(Conflict(path.clone()));
    }
    Ok(match (at, blob) {
        (Ok(at), Some(id)) => replace(entries, at, TreeNode::File(id)),
        (Ok(at), None) => {
            entries.remove(at);
            true
        }
        (Err(at), Some(id)) => {
            entries.insert(at, DirEntry { name: intern(name), node: TreeNode::File(id) });
            true
        }
        (Err(_), None) => false,
    })
}

fn edit_subdir(
    entries: &mut DirEntries,
    name: &str,
    edit: impl FnOnce(Option<&Arc<Dir>>) -> Result<Option<Arc<Dir>>, Conflict>,
) -> Result<bool, Conflict> {
    let found = entries.locate(name, true);
    let old = match found.map(|at| entries.node(at)) {
        Ok(TreeNode::Dir(_, dir)) => Some(dir),
        Ok(TreeNode::File(_) | TreeNode::Foreign(_)) | Err(_) => None,
    };
    let new = edit(old)?;
    Ok(match (found, new) {
        (Ok(at), Some(dir)) => replace(entries, at, TreeNode::of(dir)),
        (Ok(at), None) => {
            entries.remove(at);
            true
        }
        (Err(at), Some(dir)) => {
            entries.insert(at, DirEntry { name: intern(name), node: TreeNode::of(dir) });
            true
        }
        (Err(_), None) => false,
    })
}

/// Whether it was another one.
fn replace(entries: &mut DirEntries, at: At, node: TreeNode) -> bool {
    let changes = match (entries.node(at), &node) {
        // Directories with the same id are the same, however large they are.
        (TreeNode::Dir(old, _), TreeNode::Dir(new, _)) => old != new,
        (old, new) => old != new,
    };
    if changes {
        entries.replace(at, node);
    }
    changes
}

#[cfg(test)]
mod tests {
    use gix::objs::Kind;

    use super::*;
    use crate::objects::sums::hash;

    fn path(text: &str) -> RepoPath {
        RepoPath::parse(text).unwrap()
    }

    fn blob(text: &str) -> ObjectId {
        hash(Kind::Blob, text.as_bytes()).unwrap()
    }

    /// Applies lines such as `+a/b` and `-a/c`.
    fn change(root: &Arc<Dir>, lines: &[&str]) -> Result<Arc<Dir>, Conflict> {
        let mut edits: Vec<(RepoPath, Option<ObjectId>)> =
            lines.iter().map(|line| (path(&line[1..]), line.starts_with('+').then(|| blob(line)))).collect();
        edits.sort();
        let edits: Vec<Edit<'_>> = edits.iter().map(|(path, blob)| (path, *blob)).collect();
        apply(root, &edits).map(|(root, _)| root)
    }

    fn list(root: &Dir) -> Vec<String> {
        let mut files = Vec::new();
        root.walk(&mut String::new(), &mut |path, _| files.push(path.to_owned()));
        files
    }

    fn refused(root: &Arc<Dir>, lines: &[&str]) -> String {
        match change(root, lines) {
            Err(Conflict(path)) => path.to_string(),
            other => panic!("expected a conflict, not {other:?}"),
        }
    }

    #[test]
    fn files_come_and_go_and_empty_directories_with_them() {
        let root = change(&Dir::empty(), &["+a/b/c", "+a/d", "+e"]).unwrap();
        assert_eq!(list(&root), ["a/b/c", "a/d", "e"]);
        let root = change(&root, &["-a/b/c", "-e", "-never/there", "-a/d/below/a/file"]).unwrap();
        assert_eq!(list(&root), ["a/d"]);
        assert!(matches!(root.find(&path("a")), Some(TreeNode::Dir(..))));
        let root = change(&root, &["-a/d"]).unwrap();
        assert_eq!(root, Dir::empty());
    }

    #[test]
    fn names_around_the_slash_keep_gits_order() {
        let names = ["+a-b", "+a.c", "+a/x", "+a/y/z", "+a0", "+aa"];
        let root = change(&Dir::empty(), &names).unwrap();
        assert_eq!(list(&root), ["a-b", "a.c", "a/x", "a/y/z", "a0", "aa"]);
        for name in names {
            assert!(matches!(root.find(&path(&name[1..])), Some(TreeNode::File(id)) if *id == blob(name)));
        }
        assert!(root.find(&path("a/x/y")).is_none());
    }

    #[test]
    fn a_file_never_becomes_a_directory_nor_back() {
        let root = change(&Dir::empty(), &["+a/b", "+c"]).unwrap();
        assert_eq!(refused(&root, &["+a"]), "a");
        assert_eq!(refused(&root, &["-a"]), "a");
        assert_eq!(refused(&root, &["+c/d"]), "c/d");
        assert_eq!(refused(&root, &["-c", "+c/d"]), "c/d");
        assert_eq!(refused(&root, &["+a", "-a/b"]), "a");
        assert_eq!(refused(&root, &["+n", "+n/m"]), "n/m");
        assert_eq!(refused(&root, &["+n", "+n-x", "+n/m"]), "n/m");
    }

    #[test]
    fn what_does_not_change_is_shared_and_not_encoded_again() {
        let root = change(&Dir::empty(), &["+a/b", "+c/d"]).unwrap();
        let (same, trees) = apply(&root, &[(&path("a/b"), Some(blob("+a/b")))]).unwrap();
        assert!(Arc::ptr_eq(&root, &same) && trees.is_empty());
        let (new, trees) = apply(&root, &[(&path("a/b"), Some(blob("new")))]).unwrap();
        let paths: Vec<_> = trees.iter().map(|tree| tree.path.as_str()).collect();
        assert_eq!(paths, ["a/", ""]);
        let (Some(TreeNode::Dir(_, before)), Some(TreeNode::Dir(_, after))) =
            (root.find(&path("c")), new.find(&path("c")))
        else {
            panic!("c is a directory");
        };
        assert!(Arc::ptr_eq(before, after));
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<DirEntry>(), 56);
    }
}
