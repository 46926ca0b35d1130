//! What a change makes of a tree.

use std::sync::Arc;

use countersign_core::values::path::RepoPath;
use countersign_store::snapshot::tree::{Dir, DirEntry, TreeNode, edit::Edit, edit::apply};
use countersign_store::{ObjectId, StoreError, objects::hash};
use gix::objs::Kind;

use crate::support::path;

fn blob(text: &str) -> ObjectId {
    hash(Kind::Blob, text.as_bytes()).unwrap()
}

/// Applies lines such as `+a/b` and `-a/c`.
fn change(root: &Arc<Dir>, lines: &[&str]) -> Result<Arc<Dir>, StoreError> {
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
        Err(StoreError::Conflict { path }) => path.to_string(),
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
