//! What was parsed of objects, to be asked for again. An object never changes, so neither does what is known of it.

use std::sync::Arc;

use countersign_core::{
    documents::{history::EntryFacts, signatures::SignatureSet},
    rules::snapshot::StoredSigners,
};
use gix::ObjectId;
use quick_cache::{Weighter, sync::Cache};

const SIGNERS_BYTES: u64 = 16 << 20;
const SIGNATURES_BYTES: u64 = 4 << 20;
/// How many facts about entries are kept. Each takes some hundred bytes.
const MAX_ENTRY_FACTS: usize = 32_768;

pub(crate) struct ParsedObjects {
    /// Parsed signers files. One project's copies of a signers file are all one blob.
    pub(crate) signers: Cache<ObjectId, StoredSigners, ByBytes>,
    /// A signatures file that still grows is read for each signature, to decide, to list who is missing, and to repeat
    /// what another node did.
    pub(crate) signatures: Cache<ObjectId, Arc<SignatureSet>, ByBytes>,
    /// Facts about entries of histories: each chain asks for some.
    pub(crate) entry_facts: Cache<ObjectId, EntryFacts>,
}

impl ParsedObjects {
    pub(super) fn new() -> Self {
        Self {
            signers: Cache::with_weighter((SIGNERS_BYTES / 2_048) as usize, SIGNERS_BYTES, ByBytes),
            signatures: Cache::with_weighter((SIGNATURES_BYTES / 2_048) as usize, SIGNATURES_BYTES, ByBytes),
            entry_facts: Cache::new(MAX_ENTRY_FACTS),
        }
    }
}

#[derive(Clone)]
pub(crate) struct ByBytes;

impl Weighter<ObjectId, Arc<[u8]>> for ByBytes {
    fn weight(&self, _: &ObjectId, blob: &Arc<[u8]>) -> u64 {
        blob.len() as u64 + 128
    }
}

impl Weighter<ObjectId, StoredSigners> for ByBytes {
    fn weight(&self, _: &ObjectId, signers: &StoredSigners) -> u64 {
        // The text, and about as much again for what it was parsed into.
        2 * signers.bytes.len() as u64 + 128
    }
}

impl Weighter<ObjectId, Arc<SignatureSet>> for ByBytes {
    fn weight(&self, _: &ObjectId, set: &Arc<SignatureSet>) -> u64 {
        192 * set.entries.len() as u64 + 128
    }
}
