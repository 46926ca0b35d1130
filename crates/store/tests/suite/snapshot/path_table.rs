//! The table of paths finds what the tree holds, and nothing else.

use std::{collections::BTreeSet, sync::Arc};

use countersign_core::values::{path::RepoPath, wire};
use countersign_store::snapshot::tree::{Dir, DirEntry, TreeNode, edit::Edit, edit::apply};
use countersign_store::snapshot::{path_table::NEAR, path_table::PathTable, trie::Node};
use countersign_store::{ObjectId, objects::hash};
use countersign_testing::Random;
use gix::{hashtable::HashMap, objs::Kind};

use super::trie::all;

/// Some hundred paths in a few directories, projects inside projects among them.
fn path(n: u64) -> RepoPath {
    let project = ["a", "a/b", "a/b/c/d", "e/f/g/h/i/j/k/l/m/n"][(n % 4) as usize];
    let name = match n / 4 % 8 {
        0 => format!("{}/{}", wire::ACTIVE_DIR, wire::SIGNERS_FILE),
        1 => wire::SIGNERS_FILE.to_owned(),
        2 => format!("{}.of/{}", wire::ACTIVE_DIR, wire::SIGNERS_FILE),
        3 => format!("{}/{:06}.json", wire::HISTORY_DIR, n / 32 % 13),
        _ => format!("v{}/file{}", n / 32 % 7, n / 224 % 13),
    };
    RepoPath::parse(&format!("{project}/{name}")).unwrap()
}

/// What `PathTable::of` makes of the tree, with the same key.
fn rebuild(paths: &PathTable, root: &Dir) -> PathTable {
    let empty = || Node::new(Vec::new());
    let key = paths.key.clone();
    let mut new = PathTable { key, files: empty(), histories: empty(), signers: empty() };
    root.walk(&mut String::new(), &mut |path, id| new.set(path, Some(id)));
    new
}

fn check(paths: &PathTable, root: &Arc<Dir>) {
    let rebuilt = rebuild(paths, root);
    let tables = |paths: &PathTable| [&paths.files, &paths.histories, &paths.signers].map(all);
    assert_eq!(tables(paths), tables(&rebuilt));
    let loaded = PathTable::of(root, &HashMap::default());
    for path in (0..2_912).map(path) {
        let by_tree = match root.find(&path) {
            Some(TreeNode::File(id)) => Some(*id),
            Some(TreeNode::Dir(..) | TreeNode::Foreign(_)) | None => None,
        };
        let signers = root.find_nearest(&path, [wire::ACTIVE_DIR, wire::SIGNERS_FILE]);
        for paths in [paths, &loaded] {
            assert_eq!(paths.find(path.as_str()).map(|entry| entry.id), by_tree, "{path}");
            if let Ok(nearest) = paths.find_nearest_signers(&path) {
                assert_eq!(nearest.map(|entry| entry.id), signers, "{path}");
            }
        }
    }
}

#[test]
fn places_agree_with_the_tree_and_with_a_rebuild_after_random_changes() {
    let mut root = Dir::empty();
    let mut paths = PathTable::of(&root, &HashMap::default());
    let mut random = Random::congruential(7);
    for step in 0..3_000 {
        let content = hash(Kind::Blob, &random.draw().to_le_bytes()).unwrap();
        let path = path(random.draw());
        let edit: Edit<'_> = (&path, (random.below(3) != 0).then_some(content));
        root = apply(&root, &[edit]).unwrap().0;
        paths.set(path.as_str(), edit.1);
        if step % 500 == 499 {
            check(&paths, &root);
        }
    }
    let near = RepoPath::parse("a/b/x/y/z").unwrap();
    paths.set("a/b/svc.signers/svc.signers.json", Some(ObjectId::empty_blob(gix::hash::Kind::Sha1)));
    assert!(matches!(paths.find_nearest_signers(&near), Ok(Some(entry)) if entry.id.is_empty_blob()));
}

#[test]
fn a_path_that_no_one_can_ask_for_is_not_found_however_it_is_asked_for() {
    let id = hash(Kind::Blob, b"secret").unwrap();
    // Someone put these into the tree by hand.
    let dir = |name: &str, node| {
        let entry = DirEntry { name: name.into(), node };
        TreeNode::of(Dir::from_stored(id, vec![entry]).unwrap())
    };
    let names = [["https", "EXAMPLE.org", "443"], ["https", "example.org", ".."], ["a", ".git", "x"]];
    for [first, second, third] in names {
        let TreeNode::Dir(_, root) = dir(first, dir(second, dir(third, TreeNode::File(id)))) else {
            panic!()
        };
        let below = [first, second, third].join("/");
        let mut walked = Vec::new();
        root.walk(&mut String::new(), &mut |path, _| walked.push(path.to_owned()));
        assert_eq!(walked, [below.as_str()]);
        assert!(PathTable::of(&root, &HashMap::default()).find(&below).is_none(), "{below}");
    }
}

#[test]
fn files_of_a_directory_lie_side_by_side_and_are_told_apart_however_many_they_are() {
    let mut paths = PathTable::of(&Dir::empty(), &HashMap::default());
    let id = |n: u64| hash(Kind::Blob, &n.to_le_bytes()).unwrap();
    let name = |dir: &str, n: u64| format!("{dir}/{n}.json");
    for n in 0..5_000 {
        paths.set(&name("a/large", n), Some(id(n)));
        paths.set(&name(&format!("a/small{}", n / 4), n), Some(id(n)));
    }
    let paths = &paths;
    let find = |path: String| paths.find(&path).map(|entry| entry.id);
    let is_found = |n: u64| {
        let small = name(&format!("a/small{}", n / 4), n);
        find(name("a/large", n)) == Some(id(n)) && find(small) == Some(id(n))
    };
    assert!((0..5_000).all(is_found));
    assert!((5_000..10_000).all(|n| find(name("a/large", n)).is_none() && find(name("a", n)).is_none()));

    let beginning = |n: u64| paths.find(&name(&format!("a/small{}", n / 4), n)).unwrap().hash >> 44;
    assert!((0..5_000).all(|n| beginning(n) == beginning(n - n % 4)));
    let dirs: BTreeSet<u64> = (0..5_000).map(beginning).collect();
    assert!(dirs.len() > 1_240, "{} directories have beginnings of their own", dirs.len());
}

#[test]
fn what_lies_far_above_is_left_to_the_tree() {
    let paths = PathTable::of(&Dir::empty(), &HashMap::default());
    let [near, far] = [NEAR, NEAR + 1].map(|names| RepoPath::parse(&vec!["x"; names].join("/")).unwrap());
    assert!(matches!(paths.find_nearest_signers(&near), Ok(None)));
    assert!(paths.find_nearest_signers(&far).is_err());
}
