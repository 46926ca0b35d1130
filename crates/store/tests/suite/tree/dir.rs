//! Directories of thousands of entries, in pieces.

use std::sync::Arc;

use countersign_store::snapshot::tree::{DirEntries, DirEntry, TreeNode};
use gix::{ObjectId, hash::Kind as HashKind};

fn entry(name: &str) -> DirEntry {
    DirEntry { name: name.into(), node: TreeNode::File(ObjectId::null(HashKind::Sha1)) }
}

fn names(entries: &DirEntries) -> Vec<&str> {
    entries.iter().map(|entry| &*entry.name).collect()
}

#[test]
fn thousands_of_entries_stay_in_order_while_they_come_and_go() {
    let mut entries = DirEntries::default();
    // A step that shares no factor with the number visits each once.
    let visit = || (0..5_000_u32).map(|i| format!("{:05}", i * 1_777 % 5_000));
    for name in visit() {
        let at = entries.locate(&name, false).unwrap_err();
        entries.insert(at, entry(&name));
    }
    assert_eq!(names(&entries).len(), 5_000);
    assert!(names(&entries).is_sorted());
    let whole = DirEntries::new(entries.iter().cloned().collect()).unwrap();
    assert!(whole.pieces.len() != entries.pieces.len(), "cut otherwise");
    assert_eq!(whole, entries);
    for name in visit().take(4_990) {
        let at = entries.locate(&name, false).unwrap();
        entries.remove(at);
        assert!(entries.locate(&name, false).is_err());
    }
    assert_eq!(names(&entries).len(), 10);
    assert!(entries.pieces.iter().all(|piece| !piece.is_empty()));
}

#[test]
fn a_change_leaves_other_versions_and_other_pieces_alone() {
    let old = DirEntries::new((0..1_000).map(|i| entry(&format!("{i:04}"))).collect()).unwrap();
    let mut new = old.clone();
    let at = new.locate("0500", false).unwrap();
    new.remove(at);
    assert_eq!((old.iter().count(), new.iter().count()), (1_000, 999));
    let shared = old.pieces.iter().zip(&new.pieces).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
    assert_eq!(shared, old.pieces.len() - 1);
}

#[test]
fn what_is_out_of_order_is_refused() {
    assert!(DirEntries::new(vec![entry("b"), entry("a")]).is_none());
    assert!(DirEntries::new(vec![entry("a"), entry("a")]).is_none());
}
