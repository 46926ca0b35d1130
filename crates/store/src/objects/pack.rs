//! Packs, version 2: objects in, the bytes of a pack and of its index out. Nothing here touches the disk.
//!
//! gix reads packs but has no writer that lets us choose deltas inside a batch and the order of fsync, so this is ours.

use flate2::{Compress, Compression, FlushCompress, Status};
use gix::{ObjectId, objs::Kind, odb::pack::data::entry::Header};

use crate::objects::{delta::encode_delta, stored, sums::Checksum};

pub(crate) const HEADER_BYTES: usize = 12;
/// So many differences lead to any object, through however many folds it went: a reader has to walk all of them. Git itself
/// stops here, and breaks longer chains when it sends them.
pub(crate) const MAX_CHAIN: usize = 50;
/// What is written as it is: shorter than a commit, longer than most differences between versions of a directory. They
/// hardly get smaller, and to make the compressor ready for each would cost more than all else. Blobs are also read as
/// they lie, and most are small: up to [`stored::MAX_BYTES`] they are larger on disk, and several times as fast to read.
/// Directories are mostly ids, which do not get smaller: where one block holds them, they lie as they are. Folding makes
/// differences of most.
const MAX_STORED: usize = 192;

/// An object on its way into a pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackObject<'a> {
    pub(crate) kind: Kind,
    pub(crate) id: ObjectId,
    pub(crate) data: &'a [u8],
    /// The position of an earlier object that this one resembles: it may be written as a difference to that one.
    pub(crate) base: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct EncodedPack {
    /// The pack's checksum, from which it has its name.
    pub(crate) id: ObjectId,
    pub(crate) pack: Vec<u8>,
    pub(crate) index: Vec<u8>,
}

/// Where an object lies in a pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexEntry {
    pub(crate) id: ObjectId,
    pub(crate) crc32: u32,
    pub(crate) offset: u64,
}

/// Objects must be distinct. A full copy of a large tree costs more than anything else in a batch, which is why
/// the later versions of a directory go in as differences.
pub(crate) fn encode(objects: &[PackObject<'_>]) -> EncodedPack {
    let mut pack = header(objects.len()).to_vec();
    let mut deflate = Compress::new(Compression::new(1), true);
    let mut index: Vec<IndexEntry> = Vec::with_capacity(objects.len());
    let mut chain: Vec<usize> = Vec::with_capacity(objects.len());
    for object in objects {
        let start = pack.len();
        let delta = object
            .base
            .filter(|&base| chain[base] < MAX_CHAIN)
            .map(|base| (base, encode_delta(objects[base].data, object.data)))
            .filter(|(_, delta)| delta.len() < object.data.len());
        match delta {
            Some((base, delta)) => {
                let header = Header::OfsDelta { base_distance: start as u64 - index[base].offset };
                append_entry(&header, &delta, &mut deflate, &mut pack);
                chain.push(chain[base] + 1);
            }
            None => {
                append_entry(&header_of(object.kind), object.data, &mut deflate, &mut pack);
                chain.push(0);
            }
        }
        let crc32 = crc32fast::hash(&pack[start..]);
        index.push(IndexEntry { id: object.id, crc32, offset: start as u64 });
    }
    let id = Checksum::of(&pack);
    pack.extend_from_slice(id.as_slice());
    EncodedPack { id, index: encode_index(index, id), pack }
}

pub(crate) fn header(objects: usize) -> [u8; HEADER_BYTES] {
    let count = u32::try_from(objects).expect("a pack is built in memory, far below 2^32 objects");
    let mut header = *b"PACK\0\0\0\x02....";
    header[8..].copy_from_slice(&count.to_be_bytes());
    header
}

/// The index file (version 2) of the pack with checksum `pack`.
pub(crate) fn encode_index(mut entries: Vec<IndexEntry>, pack: ObjectId) -> Vec<u8> {
    entries.sort_unstable_by_key(|entry| entry.id);
    let mut out = Vec::with_capacity(1_100 + entries.len() * 28);
    out.extend_from_slice(b"\xfftOc\0\0\0\x02");
    let mut counts = [0u32; 256];
    for entry in &entries {
        counts[usize::from(entry.id.as_slice()[0])] += 1;
    }
    let mut total = 0;
    for count in counts {
        total += count;
        out.extend_from_slice(&total.to_be_bytes());
    }
    entries.iter().for_each(|entry| out.extend_from_slice(entry.id.as_slice()));
    entries.iter().for_each(|entry| out.extend_from_slice(&entry.crc32.to_be_bytes()));
    let mut large: Vec<u64> = Vec::new();
    for entry in &entries {
        // An offset beyond 31 bits is a reference into the table of 64-bit offsets behind this one.
        let small = u32::try_from(entry.offset).ok().filter(|offset| offset >> 31 == 0);
        let field = small.unwrap_or(1 << 31 | large.len() as u32);
        if small.is_none() {
            large.push(entry.offset);
        }
        out.extend_from_slice(&field.to_be_bytes());
    }
    large.iter().for_each(|offset| out.extend_from_slice(&offset.to_be_bytes()));
    out.extend_from_slice(pack.as_slice());
    let own = Checksum::of(&out);
    out.extend_from_slice(own.as_slice());
    out
}

fn header_of(kind: Kind) -> Header {
    match kind {
        Kind::Commit => Header::Commit,
        Kind::Tree => Header::Tree,
        Kind::Blob => Header::Blob,
        Kind::Tag => Header::Tag,
    }
}

/// One entry by itself.
pub(crate) fn encode_entry(header: &Header, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 32);
    append_entry(header, data, &mut Compress::new(Compression::new(1), true), &mut out);
    out
}

fn append_entry(header: &Header, data: &[u8], deflate: &mut Compress, out: &mut Vec<u8>) {
    header.write_to(data.len() as u64, out).expect("writing to memory cannot fail");
    let max_stored = match header {
        Header::Blob => stored::MAX_BYTES,
        Header::Tree => stored::MAX_BLOCK,
        Header::Commit | Header::Tag | Header::RefDelta { .. } | Header::OfsDelta { .. } => MAX_STORED,
    };
    if data.len() <= max_stored {
        return stored::append(data, out);
    }
    deflate.reset();
    loop {
        let rest = &data[deflate.total_in() as usize..];
        out.reserve(rest.len() / 2 + 64);
        let status = deflate.compress_vec(rest, out, FlushCompress::Finish);
        if status.expect("deflate takes any input") == Status::StreamEnd {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use gix::{
        hash::Kind as HashKind,
        odb::pack::{cache, data, index},
    };

    use super::*;
    use crate::objects::sums::hash;

    fn object(kind: Kind, data: &[u8], base: Option<usize>) -> PackObject<'_> {
        let id = hash(kind, data).unwrap();
        PackObject { kind, id, data, base }
    }

    /// Reads every object back through gix, by its id.
    fn check(objects: &[PackObject<'_>]) -> EncodedPack {
        let encoded = encode(objects);
        let index = index::File::from_data(encoded.index.clone(), "i.idx".into(), HashKind::Sha1).unwrap();
        let pack = data::File::from_data(encoded.pack.clone(), "i.pack".into(), HashKind::Sha1).unwrap();
        assert_eq!(index.num_objects() as usize, objects.len());
        let mut inflate = gix::zlib::Inflate::default();
        for object in objects {
            let at = index.lookup(object.id).expect("the index names every object");
            let entry = pack.entry(index.pack_offset_at_index(at)).unwrap();
            let mut out = Vec::new();
            let found = pack.decode_entry(entry, &mut out, &mut inflate, &|_, _| Ok(None), &mut cache::Never);
            assert_eq!(found.unwrap().kind, object.kind);
            assert_eq!(out, object.data);
        }
        encoded
    }

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn objects_of_every_size_are_read_back() {
        let data: Vec<Vec<u8>> =
            [0, 1, 15, 16, 127, MAX_STORED, MAX_STORED + 1, 4_096, 4_097, 65_535, 65_536, 70_000]
                .map(noise)
                .into();
        let kinds = [Kind::Blob, Kind::Tree];
        let objects = kinds.iter().flat_map(|kind| data.iter().map(|data| object(*kind, data, None)));
        check(&objects.collect::<Vec<_>>());
    }

    #[test]
    fn versions_of_a_large_object_become_a_chain_of_differences() {
        let first = noise(0x1_0000 * 3);
        let versions: Vec<Vec<u8>> = (0..120)
            .map(|n| {
                let mut version = first.clone();
                version.splice(1_000 * n..1_000 * n + 20, noise(n));
                version
            })
            .collect();
        let objects: Vec<_> =
            versions.iter().enumerate().map(|(n, data)| object(Kind::Blob, data, n.checked_sub(1))).collect();
        let encoded = check(&objects);
        // 120 versions in chains of 51 need three full copies.
        assert!(encoded.pack.len() < first.len() * 4, "{} bytes", encoded.pack.len());
    }

    /// A document with these lines.
    fn document(lines: impl Iterator<Item = usize>) -> Vec<u8> {
        let line =
            |n: usize| format!("  \"line {n:05}\": \"{:064x}\",\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        lines.map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn lines_that_come_and_go_anywhere_make_a_short_difference() {
        let base = document((0..2_000).filter(|n| n % 50 != 0));
        let more = document(0..2_000);
        let fewer = document((0..2_000).filter(|n| n % 50 != 0 && n % 77 != 0));
        for target in [more, fewer] {
            let difference = encode_delta(&base, &target).len();
            check(&[object(Kind::Blob, &base, None), object(Kind::Blob, &target, Some(0))]);
            assert!(difference < target.len() / 30, "{difference} of {} bytes", target.len());
        }
    }

    #[test]
    fn whatever_lines_two_versions_have_in_common_the_later_one_is_read_back() {
        let mut state = 7u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..200 {
            // Lines that repeat, change their places, and are cut off.
            let mut draw = || {
                let (count, cut) = (next(40), next(30));
                let mut bytes = document((0..count).map(|_| next(12)).collect::<Vec<_>>().into_iter());
                bytes.truncate(bytes.len().saturating_sub(cut));
                bytes
            };
            let (base, target) = (draw(), draw());
            if base != target {
                check(&[object(Kind::Blob, &base, None), object(Kind::Blob, &target, Some(0))]);
            }
        }
    }

    #[test]
    fn a_difference_handles_overlap_growth_and_nothing_in_common() {
        let cases: [(&[u8], &[u8]); 6] = [
            (b"aaaaaaaaaaaaaaaaaaaaaaaa", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
            (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"aaaaaaaaaaaaaaaaaaaaaaa"),
            (b"", b"something"),
            (b"something", b""),
            (b"abcdefghijklmnopqrstuvwxyz0123456789", b"abcdefghijklmnopqrstuvwxyz0123456789!"),
            (b"abc", b"xyz"),
        ];
        for (base, target) in cases {
            check(&[object(Kind::Blob, base, None), object(Kind::Blob, target, Some(0))]);
        }
    }

    #[test]
    fn offsets_beyond_31_bits_are_found_in_the_index() {
        let ids: Vec<ObjectId> = (0..4).map(|n| object(Kind::Blob, &[n], None).id).collect();
        let offsets = [12, (1 << 31) - 1, 1 << 31, 1 << 40];
        let entries =
            ids.iter().zip(offsets).map(|(&id, offset)| IndexEntry { id, crc32: 0, offset }).collect();
        let bytes = encode_index(entries, ids[0]);
        let index = index::File::from_data(bytes, "i.idx".into(), HashKind::Sha1).unwrap();
        for (id, offset) in ids.iter().zip(offsets) {
            assert_eq!(index.pack_offset_at_index(index.lookup(id).unwrap()), offset);
        }
    }
}
