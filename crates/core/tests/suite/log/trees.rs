//! The Merkle tree, compared with the recursive definitions of RFC 6962 and with a crate by other people.

use std::{cell::RefCell, collections::HashMap, ops::Range};

use countersign_core::log::tree::{
    BadProof, Hash, Tree, TreeHead, empty_root, leaf_hash, node_hash, parse_hash, proves_fork,
    verify_consistency, verify_inclusion, write_hash,
};
use ct_merkle::mem_backed_tree::MemoryBackedTree;

const SIZES: usize = 130;

fn leaf(n: usize) -> Vec<u8> {
    format!("leaf {n}").into_bytes()
}

fn hashes(size: usize) -> Vec<Hash> {
    (0..size).map(|n| leaf_hash(&leaf(n))).collect()
}

fn tree(size: usize) -> Tree {
    let mut tree = Tree::default();
    hashes(size).into_iter().for_each(|hash| tree.push(hash));
    tree
}

/// RFC 6962, 2.1: the largest power of two below n.
fn k(n: usize) -> usize {
    (1..).map(|power| 1 << power).find(|power| *power >= n).expect("a power") / 2
}

/// The definitions, which remember what they have computed.
struct Naive {
    leaves: Vec<Hash>,
    roots: RefCell<HashMap<Range<usize>, Hash>>,
}

impl Naive {
    fn new(size: usize) -> Self {
        Self { leaves: hashes(size), roots: RefCell::default() }
    }

    fn mth(&self, range: Range<usize>) -> Hash {
        if let Some(root) = self.roots.borrow().get(&range) {
            return *root;
        }
        let root = match range.len() {
            0 => empty_root(),
            1 => self.leaves[range.start],
            length => {
                let middle = range.start + k(length);
                node_hash(&self.mth(range.start..middle), &self.mth(middle..range.end))
            }
        };
        self.roots.borrow_mut().insert(range, root);
        root
    }

    /// RFC 6962, 2.1.1, for the leaf `m` of the log.
    fn path(&self, m: usize, range: Range<usize>) -> Vec<Hash> {
        if range.len() == 1 {
            return Vec::new();
        }
        let middle = range.start + k(range.len());
        let (left, right) = (range.start..middle, middle..range.end);
        let (near, far) = if m < middle { (left, right) } else { (right, left) };
        let mut proof = self.path(m, near);
        proof.push(self.mth(far));
        proof
    }

    /// RFC 6962, 2.1.2, for the old tree that ends before the leaf `m`.
    fn subproof(&self, m: usize, range: Range<usize>, is_known: bool) -> Vec<Hash> {
        if m == range.end {
            return if is_known { Vec::new() } else { vec![self.mth(range)] };
        }
        let middle = range.start + k(range.len());
        let (left, right) = (range.start..middle, middle..range.end);
        let (mut proof, sibling) = if m <= middle {
            (self.subproof(m, left, is_known), self.mth(right))
        } else {
            (self.subproof(m, right, false), self.mth(left))
        };
        proof.push(sibling);
        proof
    }
}

/// The proof with one hash changed, missing or more, at every place.
fn tampered(proof: &[Hash]) -> impl Iterator<Item = Vec<Hash>> {
    let foreign = leaf_hash(b"foreign");
    let edited = move |edit: &dyn Fn(&mut Vec<Hash>)| {
        let mut proof = proof.to_vec();
        edit(&mut proof);
        proof
    };
    let changed = (0..proof.len()).map(move |n| edited(&|proof| proof[n] = foreign));
    let missing = (0..proof.len()).map(move |n| edited(&|proof| _ = proof.remove(n)));
    let more = (0..=proof.len()).map(move |n| edited(&|proof| proof.insert(n, foreign)));
    changed.chain(missing).chain(more)
}

#[test]
fn roots_are_those_of_the_definition_for_every_earlier_size() {
    let (tree, naive) = (tree(SIZES), Naive::new(SIZES));
    for size in 0..=SIZES {
        assert_eq!(tree.root(size as u64), Some(naive.mth(0..size)), "{size}");
    }
    assert_eq!(tree.root(SIZES as u64 + 1), None);
    assert_eq!(tree.len(), SIZES as u64);
    assert_eq!(empty_root().to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[test]
fn every_inclusion_is_proven_as_defined_and_no_tampered_proof_holds() {
    let (tree, naive) = (tree(SIZES), Naive::new(SIZES));
    for size in 1..=SIZES {
        let root = naive.mth(0..size);
        for (index, hash) in naive.leaves[..size].iter().enumerate() {
            let proof = tree.inclusion(index as u64, size as u64).unwrap();
            assert_eq!(proof, naive.path(index, 0..size), "{index} of {size}");
            let verify = |index, proof: &[Hash]| verify_inclusion(hash, index, size as u64, proof, &root);
            assert_eq!(verify(index as u64, &proof), Ok(()), "{index} of {size}");
            for proof in tampered(&proof) {
                assert_eq!(verify(index as u64, &proof), Err(BadProof), "{index} of {size}");
            }
            for other in [index as u64 + 1, size as u64, u64::MAX] {
                assert_eq!(verify(other, &proof), Err(BadProof), "{index} as {other} of {size}");
            }
        }
        assert_eq!(tree.inclusion(size as u64, size as u64), None);
    }
    assert_eq!(tree.inclusion(0, SIZES as u64 + 1), None);
    assert_eq!(tree.inclusion(0, 0), None);
}

#[test]
fn every_consistency_is_proven_as_defined_and_no_tampered_proof_holds() {
    let (tree, naive) = (tree(SIZES), Naive::new(SIZES));
    let head = |size: usize| TreeHead { size: size as u64, root: naive.mth(0..size) };
    let heads: Vec<TreeHead> = (0..=SIZES).map(head).collect();
    for new in 0..=SIZES {
        for old in 0..=new {
            let proof = tree.consistency(old as u64, new as u64).unwrap();
            let expected = if old == 0 { Vec::new() } else { naive.subproof(old, 0..new, true) };
            assert_eq!(proof, expected, "{old} to {new}");
            assert_eq!(verify_consistency(&heads[old], &heads[new], &proof), Ok(()), "{old} to {new}");
            for proof in tampered(&proof) {
                let verified = verify_consistency(&heads[old], &heads[new], &proof);
                assert_eq!(verified, Err(BadProof), "{old} to {new}");
            }
            let other = |head: &TreeHead| TreeHead { root: leaf_hash(b"other"), ..*head };
            assert!(verify_consistency(&other(&heads[old]), &heads[new], &proof).is_err(), "{old} to {new}");
            // Without a leaf before it, nothing is known of the new tree.
            assert_eq!(
                verify_consistency(&heads[old], &other(&heads[new]), &proof).is_err(),
                old > 0 || new == 0,
                "{old} to {new}"
            );
            if old < new {
                assert!(verify_consistency(&heads[new], &heads[old], &proof).is_err(), "{new} to {old}");
            }
            // The same proof shows that the new tree does not begin with another old one.
            let forks = proves_fork(&other(&heads[old]), &heads[new], &proof);
            assert_eq!(forks, old < new && old > 0 && !old.is_power_of_two(), "{old} to {new}");
            assert!(!proves_fork(&heads[old], &heads[new], &proof), "{old} to {new}");
            assert!(!proves_fork(&other(&heads[old]), &other(&heads[new]), &proof), "{old} to {new}");
            assert!(!proves_fork(&other(&heads[new]), &heads[old], &proof), "{new} to {old}");
        }
    }
    // Two roots of one size need no proof.
    let (other, path) = (TreeHead { size: 3, root: leaf_hash(b"other") }, [hashes(3)[2], naive.mth(0..2)]);
    assert!(!proves_fork(&other, &heads[3], &path) && !proves_fork(&heads[0], &heads[3], &path));
    assert_eq!(tree.consistency(3, 2), None);
    assert_eq!(tree.consistency(0, SIZES as u64 + 1), None);
}

#[test]
fn sizes_at_the_end_of_the_numbers_are_no_overflow() {
    let hash = leaf_hash(b"");
    for size in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1] {
        for proof in [vec![], vec![hash; 63], vec![hash; 64], vec![hash; 200]] {
            for index in [0, 1, size / 2, size - 1, size] {
                assert!(verify_inclusion(&hash, index, size, &proof, &hash).is_err());
                let (old, new) = (TreeHead { size: index, root: hash }, TreeHead { size, root: hash });
                let is_same = index == size && proof.is_empty();
                assert_eq!(verify_consistency(&old, &new, &proof).is_ok(), is_same, "{index} {size}");
            }
        }
    }
}

#[test]
fn another_implementation_gives_the_same_roots_and_accepts_the_same_proofs() {
    type Theirs = MemoryBackedTree<sha2::Sha256, Vec<u8>>;
    let ours = tree(SIZES);
    let (mut theirs, mut roots) = (Theirs::new(), vec![Theirs::new().root()]);
    for size in 1..=SIZES {
        theirs.push(leaf(size - 1));
        let root = theirs.root();
        assert_eq!(root.as_bytes().as_slice(), ours.root(size as u64).unwrap().as_bytes(), "{size}");
        for index in 0..size {
            let proof = theirs.prove_inclusion(index);
            let bytes = ours.inclusion(index as u64, size as u64).unwrap();
            assert_eq!(proof.as_bytes(), flat(&bytes), "{index} of {size}");
        }
        for (old, old_root) in roots.iter().enumerate().skip(1) {
            let proof = theirs.prove_consistency(size - old);
            let bytes = ours.consistency(old as u64, size as u64).unwrap();
            assert_eq!(proof.as_bytes(), flat(&bytes), "{old} to {size}");
            assert!(root.verify_consistency(old_root, &proof).is_ok());
        }
        roots.push(root);
    }
}

fn flat(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

#[test]
fn tiles_have_the_hashes_of_complete_subtrees() {
    let (tree, leaves) = (tree(256 * 3 + 5), hashes(256 * 3 + 5));
    assert_eq!(tree.tile_hashes(0, 512..768).unwrap(), &leaves[512..768]);
    assert_eq!(tree.tile_hashes(0, 768..773).unwrap(), &leaves[768..]);
    assert_eq!(tree.tile_hashes(0, 768..774), None);
    let roots: Vec<Hash> = (0..3).map(|n| Naive::new(256 * 3).mth(256 * n..256 * (n + 1))).collect();
    assert_eq!(tree.tile_hashes(1, 0..3).unwrap(), roots);
    assert_eq!(tree.tile_hashes(1, 0..4), None);
    #[expect(clippy::reversed_empty_ranges, reason = "a stranger can ask for it")]
    let reversed = tree.tile_hashes(0, 5..3);
    assert_eq!(reversed, None);
    assert_eq!(tree.tile_hashes(2, 0..1), None);
    assert_eq!(tree.tile_hashes(usize::MAX, 0..1), None);
}

#[test]
fn a_tree_that_forgets_its_end_goes_on_as_if_it_had_never_been() {
    let whole = tree(100);
    for len in 0..=100 {
        let mut shorter = whole.clone();
        shorter.truncate(len);
        assert_eq!((shorter.len(), shorter.is_empty()), (len, len == 0));
        assert_eq!(shorter.root(len), whole.root(len));
        hashes(100).into_iter().skip(usize::try_from(len).unwrap()).for_each(|hash| shorter.push(hash));
        assert_eq!(shorter.root(100), whole.root(100), "{len}");
    }
}

#[test]
fn a_hash_has_one_spelling() {
    let text = write_hash(&leaf_hash(b"hello"));
    assert_eq!(text, "iipcm3aIJ95alVLDigRMZpWcaPbS8htSYK9U0vh9uCc=");
    assert_eq!(parse_hash(&text), Some(leaf_hash(b"hello")));
    let others =
        [text.trim_end_matches('='), "iipcm3aIJ95alVLDigRMZpWcaPbS8htSYK9U0vh9uCd=", "", &format!("{text} ")];
    for other in others {
        assert_eq!(parse_hash(other), None, "{other:?}");
    }
}
