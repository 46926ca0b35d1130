//! Short chains that were asked for, ready to be sent again.

use axum::body::Bytes;
use countersign_core::{documents::layout, values::path::RepoPath};
use countersign_store::{Head, ObjectId};
use quick_cache::{Weighter, sync::Cache};

/// What they take, with what tells whether they still hold.
pub const MAX_BYTES: u64 = 16 << 20;

/// By the signers file that each leads to: all releases of a project that one file governs have the same.
#[derive(Debug)]
pub struct KnownChains(Cache<ObjectId, KnownChain, ByBytes>);

/// Most have one entry, and are found without another step through memory.
#[derive(Debug, Clone)]
pub struct KnownChain {
    /// The first entry of the history.
    pub first: ObjectId,
    /// The following ones, up to that with this signers file.
    pub later: Vec<ObjectId>,
    pub text: Bytes,
}

impl KnownChains {
    /// The chain of this project up to this signers file, unless its history in `head` begins with other entries.
    pub fn find(&self, head: &Head, signers: &ObjectId, project: &RepoPath) -> Option<Bytes> {
        let known = self.0.get(signers)?;
        let entry = |number| head.file(&layout::history_entry(project, number)).map(|found| found.id);
        let mut entries = (1..).zip([&known.first].into_iter().chain(&known.later));
        entries.all(|(number, id)| entry(number) == Some(*id)).then_some(known.text)
    }

    /// What they take.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    pub fn remember(&self, signers: ObjectId, chain: KnownChain) {
        self.0.insert(signers, chain);
    }
}

impl Default for KnownChains {
    fn default() -> Self {
        Self(Cache::with_weighter((MAX_BYTES / 2_048) as usize, MAX_BYTES, ByBytes))
    }
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<ObjectId, KnownChain> for ByBytes {
    fn weight(&self, _: &ObjectId, chain: &KnownChain) -> u64 {
        (chain.text.len() + size_of_val(&*chain.later) + 256) as u64
    }
}
