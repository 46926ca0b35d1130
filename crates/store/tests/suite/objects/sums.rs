//! SHA-1, in the two ways in which the store computes it.

use countersign_store::{
    ObjectId,
    objects::sums::{Checksum, hash, hash_tree},
};
use gix::{hash::Kind as HashKind, objs::Kind};

#[test]
fn directories_have_the_ids_that_git_gives_them() {
    assert_eq!(hash_tree(b""), ObjectId::empty_tree(HashKind::Sha1));
    for length in [1, 20, 54, 55, 56, 63, 64, 65, 39_000] {
        let bytes: Vec<u8> = (0..length).map(|i: u32| (i * 7) as u8).collect();
        assert_eq!(Some(hash_tree(&bytes)), hash(Kind::Tree, &bytes), "{length} bytes");
    }
}

#[test]
fn a_checksum_does_not_depend_on_how_the_bytes_come() {
    let mut checksum = Checksum::default();
    ["a", "", "bc"].iter().for_each(|part| checksum.update(part.as_bytes()));
    let id = checksum.finish();
    assert_eq!(id, Checksum::of(b"abc"));
    assert_eq!(id.to_string(), "a9993e364706816aba3e25717850c26c9cd0d89d");
}
