//! Short chains that were asked for, ready to be sent again.

use std::sync::Arc;

use axum::body::Bytes;
use countersign_core::{documents::layout, values::path::RepoPath};
use countersign_store::{Head, ObjectId};
use quick_cache::{Weighter, sync::Cache};

/// What they take, with what tells whether they still hold.
pub const MAX_BYTES: u64 = 16 << 20;

/// By the signers file that each leads to: all releases of a project that one file governs have the same.
#[derive(Debug)]
pub struct KnownChains(Cache<ObjectId, Arc<KnownChain>, ByBytes>);

#[derive(Debug)]
pub struct KnownChain {
    /// Of the history, from the first to the one with this signers file.
    pub entries: Vec<ObjectId>,
    pub text: Bytes,
}

impl KnownChains {
    /// The chain of this project up to this signers file, unless its history in `head` begins with other entries.
    pub fn find(&self, head: &Head, signers: &ObjectId, project: &RepoPath) -> Option<Bytes> {
        let known = self.0.get(signers)?;
        let entry = |number| head.file(&layout::history_entry(project, number)).map(|found| found.id);
        let holds = (1..).zip(&known.entries).all(|(number, id)| entry(number) == Some(*id));
        holds.then(|| known.text.clone())
    }

    /// What they take.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    pub fn remember(&self, signers: ObjectId, chain: KnownChain) {
        self.0.insert(signers, Arc::new(chain));
    }
}

impl Default for KnownChains {
    fn default() -> Self {
        Self(Cache::with_weighter((MAX_BYTES / 2_048) as usize, MAX_BYTES, ByBytes))
    }
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<ObjectId, Arc<KnownChain>> for ByBytes {
    fn weight(&self, _: &ObjectId, chain: &Arc<KnownChain>) -> u64 {
        (chain.text.len() + size_of_val(&*chain.entries) + 256) as u64
    }
}
