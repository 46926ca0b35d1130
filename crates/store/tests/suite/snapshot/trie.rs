//! The table that versions share.

use std::{collections::BTreeMap, sync::Arc};

use countersign_store::snapshot::trie::{Node, TableEntry, WIDTH};
use countersign_store::{ObjectId, objects::hash as hash_object, objects::spot::Spot};
use gix::objs::Kind;

/// Spread evenly, the same in every run.
fn scatter(n: u64) -> u64 {
    let mixed = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn entry(hash: u64, check: u32, content: u64) -> TableEntry {
    let id = hash_object(Kind::Blob, &content.to_le_bytes()).unwrap();
    TableEntry { hash, spot: Spot::default(), check, id }
}

/// All of them, sorted.
pub(super) fn all(node: &Node) -> Vec<(u64, u32, ObjectId)> {
    match node {
        Node::Leaf(leaf) => leaf.iter().map(|entry| (entry.hash, entry.check, entry.id)).collect(),
        Node::Branch(nodes) => nodes.iter().flat_map(all).collect(),
    }
}

fn expected(model: &BTreeMap<(u64, u32), ObjectId>) -> Vec<(u64, u32, ObjectId)> {
    model.iter().map(|(&(hash, check), &id)| (hash, check, id)).collect()
}

#[test]
fn it_agrees_with_a_map_while_places_come_and_go_and_old_versions_stay() {
    // Few enough to be met again, and many enough for three levels.
    let universe = |n: u64| scatter(scatter(n) % 40_000);
    let mut model = BTreeMap::new();
    let mut node = Node::new(Vec::new());
    let mut versions = Vec::new();
    for n in 0..120_000_u64 {
        let (hash, check) = (universe(n), (n % 3) as u32);
        if scatter(n + 1).is_multiple_of(3) {
            node.remove(hash, check);
            model.remove(&(hash, check));
        } else {
            let entry = entry(hash, check, n);
            model.insert((hash, check), entry.id);
            node.insert(entry);
        }
        if n % 30_000 == 7 {
            versions.push((node.clone(), model.clone()));
        }
    }
    versions.push((node, model));
    for (node, model) in versions {
        assert_eq!(all(&node), expected(&model));
        for n in 0..40_000 {
            let hash = scatter(n);
            let found: Vec<_> = node.find(hash).map(|entry| (entry.hash, entry.check, entry.id)).collect();
            let of_hash = model.range((hash, 0)..=(hash, u32::MAX));
            assert_eq!(found, of_hash.map(|(&(h, c), &id)| (h, c, id)).collect::<Vec<_>>());
        }
        let entries = model.iter().map(|(&(hash, check), &id)| TableEntry { id, ..entry(hash, check, 0) });
        assert_eq!(all(&Node::new(entries.rev().collect())), all(&node));
    }
}

#[test]
fn hashes_that_are_alike_or_equal_are_told_apart() {
    let mut node = Node::new(Vec::new());
    let hashes = (0..200_u64).chain((0..200).map(|n| u64::MAX - n));
    let entries: Vec<TableEntry> = hashes.map(|hash| entry(hash, 0, hash)).collect();
    entries.iter().for_each(|entry| node.insert(entry.clone()));
    (0..200).for_each(|check| node.insert(entry(7, check, 7)));
    assert!(entries.iter().all(|entry| node.find(entry.hash).any(|found| found.id == entry.id)));
    assert_eq!((node.find(7).count(), node.find(200).count()), (200, 0));
    (0..200).for_each(|check| node.remove(7, check));
    assert_eq!((node.find(7).count(), all(&node).len()), (0, 399));
}

#[test]
fn a_change_copies_little_and_a_place_is_small() {
    let old = Node::new((0..100_000).map(|n| entry(scatter(n), 0, n)).collect());
    let mut new = old.clone();
    new.insert(entry(scatter(100_001), 0, 0));
    let (Node::Branch(old), Node::Branch(new)) = (&old, &new) else { panic!("they are many") };
    let is_shared = |(a, b): &(&Node, &Node)| match (a, b) {
        (Node::Branch(a), Node::Branch(b)) => Arc::ptr_eq(a, b),
        (Node::Leaf(a), Node::Leaf(b)) => Arc::ptr_eq(a, b),
        (Node::Leaf(_), Node::Branch(_)) | (Node::Branch(_), Node::Leaf(_)) => false,
    };
    assert_eq!(old.iter().zip(new.iter()).filter(is_shared).count(), WIDTH - 1);
    assert_eq!((size_of::<TableEntry>(), size_of::<Node>()), (40, 16));
}
