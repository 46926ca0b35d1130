//! Digests as the tables know them.

use std::hash::{BuildHasher as _, RandomState};

use countersign_core::values::digest::{Sha256, Sha512};

/// A digest of a published file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileDigest {
    Sha256(Sha256),
    Sha512(Sha512),
}

/// Hashes digests with a key: a checksums file can name any digests, so strangers could make up many that begin alike.
#[derive(Clone, Default)]
pub(crate) struct DigestHasher(RandomState);

impl DigestHasher {
    pub(super) fn hash(&self, digest: &FileDigest) -> u64 {
        self.0.hash_one(digest)
    }
}
