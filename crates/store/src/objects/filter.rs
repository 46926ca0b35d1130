//! Says quickly that a pack does not hold an object. Most packs hold none of what is asked for, and to find that out in
//! their indexes costs more than to read the object.

use gix::ObjectId;

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
            let (block, bits) = place(id.as_bytes(), blocks);
            for (word, bit) in positions(bits) {
                filter.blocks[block][word] |= bit;
            }
        }
        filter
    }

    /// Whether the object may be there. False means that it is certainly not.
    pub fn may_contain(&self, id: &ObjectId) -> bool {
        let (block, bits) = place(id.as_bytes(), self.blocks.len());
        let block = &self.blocks[block];
        positions(bits).all(|(word, bit)| block[word] & bit != 0)
    }
}

fn place(id: &[u8], blocks: usize) -> (usize, u64) {
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
