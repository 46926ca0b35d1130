//! SHA-1, as Git uses it, in two ways. What strangers wrote is hashed with an eye on content that was made to collide.
//! Directories, and the checksums of packs, are hashed as fast as the processor can, since every commit hashes directories
//! whole. In a directory strangers choose names alone, which are text without control characters; the blocks that make two
//! contents collide are not. And nothing is believed because of an id: signatures are over other digests.

use gix::{ObjectId, hash::Kind as HashKind, objs::Kind};
use sha1::{Digest as _, Sha1};

/// The id of an object; `None` where the content was made to collide.
pub(crate) fn hash(kind: Kind, bytes: &[u8]) -> Option<ObjectId> {
    gix::objs::compute_hash(HashKind::Sha1, kind, bytes).ok()
}

/// The id of a directory that we made.
pub(crate) fn hash_tree(bytes: &[u8]) -> ObjectId {
    let mut checksum = Checksum::default();
    checksum.update(format!("{} {}\0", Kind::Tree, bytes.len()).as_bytes());
    checksum.update(bytes);
    checksum.finish()
}

/// Of a file that ends with it.
#[derive(Default)]
pub(crate) struct Checksum(Sha1);

impl Checksum {
    pub(crate) fn of(bytes: &[u8]) -> ObjectId {
        let mut checksum = Self::default();
        checksum.update(bytes);
        checksum.finish()
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> ObjectId {
        ObjectId::Sha1(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
