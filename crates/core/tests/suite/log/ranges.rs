//! Trees from the hashes of complete subtrees, as tiles hold them.

use countersign_core::log::tree::{
    BadProof, CompactTree, Hash, Subtree, Tree, TreeHead, leaf_hash, subtrees, verify_continuation,
};

const SIZES: u64 = 130;

fn tree(size: u64) -> Tree {
    let mut tree = Tree::default();
    (0..size).for_each(|n| tree.push(leaf_hash(format!("leaf {n}").as_bytes())));
    tree
}

fn head(tree: &Tree, size: u64) -> TreeHead {
    TreeHead { size, root: tree.root(size).unwrap() }
}

/// By the tree's own roots: a tree of nothing but these leaves.
fn hash_of(part: &Subtree) -> Hash {
    let mut alone = Tree::default();
    let leaves = (part.index << part.height)..((part.index + 1) << part.height);
    leaves.for_each(|n| alone.push(leaf_hash(format!("leaf {n}").as_bytes())));
    alone.root(alone.len()).unwrap()
}

fn hashes(from: u64, to: u64) -> Vec<Hash> {
    subtrees(from..to).iter().map(hash_of).collect()
}

#[test]
fn every_tree_continues_every_smaller_one() {
    let tree = tree(SIZES);
    for new in 0..=SIZES {
        for old in 0..=new {
            let (before, after) = (head(&tree, old), head(&tree, new));
            let (hashes, more) = (hashes(0, old), hashes(old, new));
            assert_eq!(verify_continuation(&before, &after, &hashes, &more), Ok(()), "{old} {new}");
            assert!(subtrees(old..new).len() <= 16);
        }
    }
}

#[test]
fn leaves_one_by_one_give_the_same_roots() {
    let tree = tree(SIZES);
    let mut compact = CompactTree::default();
    for size in 0..=SIZES {
        assert_eq!((compact.size(), compact.root()), (size, tree.root(size).unwrap()));
        compact.push_leaf(leaf_hash(format!("leaf {size}").as_bytes()));
    }
}

#[test]
fn a_changed_missing_or_further_hash_and_another_root_are_refused() {
    let tree = tree(SIZES);
    for (old, new) in [(1, 2), (5, 6), (64, 65), (65, 130), (100, 129)] {
        let (before, after) = (head(&tree, old), head(&tree, new));
        let (good_old, good_more) = (hashes(0, old), hashes(old, new));
        let refused = |before: &TreeHead, after: &TreeHead, old: &[Hash], more: &[Hash]| {
            assert_eq!(verify_continuation(before, after, old, more), Err(BadProof));
        };
        for n in 0..good_old.len() + good_more.len() {
            let (mut changed_old, mut changed_more) = (good_old.clone(), good_more.clone());
            let wrong = leaf_hash(b"wrong");
            match n.checked_sub(good_old.len()) {
                None => changed_old[n] = wrong,
                Some(n) => changed_more[n] = wrong,
            }
            refused(&before, &after, &changed_old, &changed_more);
        }
        refused(&before, &after, &good_old, &good_more[1..]);
        refused(&before, &after, &good_old[1..], &good_more);
        refused(&before, &after, &good_old, &[&good_more[..], &[leaf_hash(b"")]].concat());
        refused(&TreeHead { root: after.root, ..before }, &after, &good_old, &good_more);
        refused(&before, &TreeHead { root: before.root, ..after }, &good_old, &good_more);
        refused(&after, &before, &hashes(0, new), &[]);
    }
}

#[test]
fn the_largest_sizes_are_no_matter() {
    let parts = subtrees(1..(1 << 63) - 1);
    assert!(parts.len() < 130);
    let leaves: u64 = parts.iter().map(|part| 1_u64 << part.height).sum();
    assert_eq!(leaves, (1 << 63) - 2);
}
