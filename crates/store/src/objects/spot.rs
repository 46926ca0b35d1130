//! The place of a file's content, as far as readers have found it out.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many bits an offset has: sixty-four gibibytes, many times what a fold makes.
const OFFSET_BITS: u32 = 36;
pub const MAX_OFFSET: u64 = (1 << OFFSET_BITS) - 1;
pub const MAX_PACK: u64 = (1 << (u64::BITS - OFFSET_BITS)) - 2;

const UNKNOWN: u64 = 0;
const ELSEWHERE: u64 = u64::MAX;

/// A note that any reader may correct. It is one word, so that no reader ever sees half of one; and it is never relied on
/// beyond what it leads to: packs have numbers that are not used again.
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
