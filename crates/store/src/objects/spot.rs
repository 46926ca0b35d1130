//! What readers have found out: where the content of a file is, which packs do not hold an object, and what was parsed.

use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};

use countersign_core::documents::{history::EntryFacts, signatures::SignatureSet};
use countersign_core::rules::snapshot::StoredSigners;
use gix::ObjectId;
use quick_cache::{Weighter, sync::Cache};

/// How many bits an offset has: sixty-four gibibytes, many times what a fold makes.
const OFFSET_BITS: u32 = 36;
pub const MAX_OFFSET: u64 = (1 << OFFSET_BITS) - 1;
pub const MAX_PACK: u64 = (1 << (u64::BITS - OFFSET_BITS)) - 2;

const UNKNOWN: u64 = 0;
const ELSEWHERE: u64 = u64::MAX;

/// A note that any reader may correct. It is one word, so that no reader ever sees half of one; and it is never relied
/// on beyond what it leads to: packs have numbers that are not used again.
#[derive(Debug, Default)]
pub struct Spot(AtomicU64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Nothing,
    /// The content lies at this offset of the pack with this number, while there is one.
    At {
        pack: u64,
        offset: u64,
    },
    /// The content does not lie in a pack as it is: it has to be decompressed, or put together.
    Elsewhere,
}

impl Spot {
    pub fn of(known: Known) -> Self {
        Self(AtomicU64::new(encode(known)))
    }

    pub fn known(&self) -> Known {
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => Known::Nothing,
            ELSEWHERE => Known::Elsewhere,
            word => Known::At { pack: (word >> OFFSET_BITS) - 1, offset: word & MAX_OFFSET },
        }
    }

    pub fn note(&self, known: Known) {
        self.0.store(encode(known), Ordering::Relaxed);
    }
}

impl Clone for Spot {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

/// Encodes a place. What does not fit counts as not known.
fn encode(known: Known) -> u64 {
    match known {
        Known::At { pack, offset } if pack < MAX_PACK && offset <= MAX_OFFSET => {
            (pack + 1) << OFFSET_BITS | offset
        }
        Known::Nothing | Known::At { .. } => UNKNOWN,
        Known::Elsewhere => ELSEWHERE,
    }
}

// Says quickly that a pack does not hold an object. Most packs hold none of what is asked for, and to find that out in
// their indexes costs more than to read the object.

const BLOCK_WORDS: usize = 8;
/// How many objects share a block of 512 bits. With 16 bits an object, about one answer in 500 is a maybe that should
/// be a no.
const OBJECTS_PER_BLOCK: usize = 32;
const BITS_PER_OBJECT: u32 = 6;

/// A Bloom filter in blocks of one cache line each. Ids are hashes already, so their bytes serve as they are.
#[derive(Debug)]
pub struct Filter {
    blocks: Box<[[u64; BLOCK_WORDS]]>,
}

impl Filter {
    pub fn of<'a>(count: usize, ids: impl Iterator<Item = &'a gix::oid>) -> Self {
        let blocks = count.div_ceil(OBJECTS_PER_BLOCK).max(1);
        let mut filter = Self { blocks: vec![[0; BLOCK_WORDS]; blocks].into_boxed_slice() };
        for id in ids {
            let (block, bits) = block_of(id.as_bytes(), blocks);
            for (word, bit) in positions(bits) {
                filter.blocks[block][word] |= bit;
            }
        }
        filter
    }

    /// Whether the object may be there. False means that it is certainly not.
    pub fn may_contain(&self, id: &ObjectId) -> bool {
        let (block, bits) = block_of(id.as_bytes(), self.blocks.len());
        let block = &self.blocks[block];
        positions(bits).all(|(word, bit)| block[word] & bit != 0)
    }
}

fn block_of(id: &[u8], blocks: usize) -> (usize, u64) {
    let word = |from: usize| {
        let bytes = id.get(from..from + 8).and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    ((word(0) % blocks as u64) as usize, word(8))
}

/// The positions that the bits choose: nine bits choose one of 512.
fn positions(bits: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..BITS_PER_OBJECT).map(move |i| {
        let nine = bits >> (9 * i) & 0x1ff;
        ((nine >> 6) as usize, 1 << (nine & 0x3f))
    })
}

// What was parsed of objects, to be asked for again. An object never changes, so neither does what is known of it.

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

/// Bounds a cache by the memory that its values take.
#[derive(Debug, Clone)]
pub struct ByBytes;

impl<K> Weighter<K, Arc<[u8]>> for ByBytes {
    fn weight(&self, _: &K, blob: &Arc<[u8]>) -> u64 {
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
