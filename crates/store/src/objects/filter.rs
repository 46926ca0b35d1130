//! Says quickly that a pack does not hold an object. Most packs hold none of what is asked for, and to find that out in
//! their indexes costs more than to read the object.

use gix::ObjectId;

const BLOCK_WORDS: usize = 8;
/// Of the 512 bits of a block. With 16 bits an object, about one answer in 500 is a maybe that should be a no.
const OBJECTS_PER_BLOCK: usize = 32;
const BITS_PER_OBJECT: u32 = 6;

/// A Bloom filter in blocks of one cache line each. Ids are hashes already, so their bytes serve as they are.
pub(crate) struct Filter {
    blocks: Box<[[u64; BLOCK_WORDS]]>,
}

impl Filter {
    pub(crate) fn of<'a>(count: usize, ids: impl Iterator<Item = &'a gix::oid>) -> Self {
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

    /// False means that it is certainly not there.
    pub(crate) fn may_contain(&self, id: &ObjectId) -> bool {
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

/// Nine bits choose one of 512.
fn positions(bits: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..BITS_PER_OBJECT).map(move |i| {
        let nine = bits >> (9 * i) & 0x1ff;
        ((nine >> 6) as usize, 1 << (nine & 0x3f))
    })
}

#[cfg(test)]
mod tests {
    use gix::objs::Kind;

    use super::*;
    use crate::objects::sums::hash;

    #[test]
    fn what_is_in_it_is_always_found_and_little_else() {
        let id = |n: u32| hash(Kind::Blob, &n.to_le_bytes()).unwrap();
        let ids: Vec<ObjectId> = (0..10_000).map(id).collect();
        let filter = Filter::of(ids.len(), ids.iter().map(|id| id.as_ref()));
        assert!(ids.iter().all(|id| filter.may_contain(id)));
        let mistaken = (10_000..110_000).filter(|n| filter.may_contain(&id(*n))).count();
        assert!(mistaken < 1_000, "{mistaken} of 100,000");
    }

    #[test]
    fn an_empty_one_contains_nothing() {
        let filter = Filter::of(0, std::iter::empty());
        assert!(!filter.may_contain(&hash(Kind::Blob, b"x").unwrap()));
    }
}
