//! SHA-1, as Git uses it, in two ways. What strangers wrote is hashed with an eye on content that was made to collide.
//! Directories, and the checksums of packs, are hashed as fast as the processor can, since every commit hashes directories
//! whole. In a directory strangers choose names alone, which are text without control characters; the blocks that make two
//! contents collide are not. And nothing is believed because of an id: signatures are over other digests.

use gix::{ObjectId, hash::Kind as HashKind, objs::Kind};
use sha1::{Digest as _, Sha1};

/// The id of an object; `None` where the content was made to collide.
pub fn hash(kind: Kind, bytes: &[u8]) -> Option<ObjectId> {
    gix::objs::compute_hash(HashKind::Sha1, kind, bytes).ok()
}

/// The id of a directory that we made.
pub fn hash_tree(bytes: &[u8]) -> ObjectId {
    let mut checksum = Checksum::default();
    checksum.update(format!("{} {}\0", Kind::Tree, bytes.len()).as_bytes());
    checksum.update(bytes);
    checksum.finish()
}

/// The checksum of a file that ends with it.
#[derive(Debug, Default)]
pub struct Checksum(Sha1);

impl Checksum {
    pub fn of(bytes: &[u8]) -> ObjectId {
        let mut checksum = Self::default();
        checksum.update(bytes);
        checksum.finish()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> ObjectId {
        ObjectId::Sha1(self.0.finalize().into())
    }
}
