//! Packs, version 2: objects in, the bytes of a pack and of its index out. Nothing here touches the disk.
//!
//! gix reads packs but has no writer that lets us choose deltas inside a batch and the order of fsync, so this is ours.

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};
use gix::{ObjectId, objs::Kind, odb::pack::data::entry::Header};
use sha1::{Digest as _, Sha1};

use crate::objects::{delta::encode_delta, stored};

const HEADER_BYTES: usize = 12;
/// The most differences that lead to any object, through however many folds it went: a reader has to walk all of them.
/// Git itself stops here, and breaks longer chains when it sends them.
pub const MAX_CHAIN: usize = 50;
/// What is written as it is: most commits, and most differences between versions of a directory or a set of signatures.
/// They hardly get smaller, and to make the compressor ready for each would cost more than all else: with a bound of 192,
/// a signature took 14 µs here instead of 1.6, for a tenth less on disk. Blobs are also read as
/// they lie, and most are small: up to [`stored::MAX_BYTES`] they are larger on disk, and several times as fast to read.
/// Directories are mostly ids, which do not get smaller: where one block holds them, they lie as they are. Folding makes
/// differences of most.
pub const MAX_STORED: usize = 512;

/// An object on its way into a pack.
#[derive(Debug)]
pub struct PackObject {
    pub kind: Kind,
    pub id: ObjectId,
    pub data: Bytes,
    /// The position of an earlier object that this one resembles: it may be written as a difference to that one.
    pub base: Option<usize>,
}

#[derive(Debug)]
pub struct EncodedPack {
    /// The pack's checksum, from which it has its name.
    pub id: ObjectId,
    pub pack: Vec<u8>,
    pub index: Vec<u8>,
}

/// The place of an object in a pack.
#[derive(Debug, Clone, Copy)]
pub struct IndexEntry {
    pub id: ObjectId,
    pub crc32: u32,
    pub offset: u64,
}

/// Objects must be distinct. A full copy of a large tree costs more than anything else in a batch, which is why
/// the later versions of a directory go in as differences.
pub fn encode(objects: &[PackObject]) -> EncodedPack {
    let mut pack = header(objects.len()).to_vec();
    let mut deflate = Compress::new(Compression::new(1), true);
    let mut index: Vec<IndexEntry> = Vec::with_capacity(objects.len());
    let mut chain: Vec<usize> = Vec::with_capacity(objects.len());
    for object in objects {
        let start = pack.len();
        let delta = object
            .base
            .filter(|&base| chain[base] < MAX_CHAIN)
            .map(|base| (base, encode_delta(&objects[base].data, &object.data)))
            .filter(|(_, delta)| delta.len() < object.data.len());
        match delta {
            Some((base, delta)) => {
                let header = Header::OfsDelta { base_distance: start as u64 - index[base].offset };
                append_entry(&header, &delta, &mut deflate, &mut pack);
                chain.push(chain[base] + 1);
            }
            None => {
                append_entry(&header_of(object.kind), &object.data, &mut deflate, &mut pack);
                chain.push(0);
            }
        }
        let crc32 = crc32fast::hash(&pack[start..]);
        index.push(IndexEntry { id: object.id, crc32, offset: start as u64 });
    }
    let id = ObjectId::Sha1(Sha1::digest(&pack).into());
    pack.extend_from_slice(id.as_slice());
    EncodedPack { id, index: encode_index(index, id), pack }
}

pub fn header(objects: usize) -> [u8; HEADER_BYTES] {
    let count = u32::try_from(objects).expect("a pack is built in memory, far below 2^32 objects");
    let mut header = *b"PACK\0\0\0\x02....";
    header[8..].copy_from_slice(&count.to_be_bytes());
    header
}

/// The index file (version 2) of the pack with checksum `pack`.
pub fn encode_index(mut entries: Vec<IndexEntry>, pack: ObjectId) -> Vec<u8> {
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
    let own = ObjectId::Sha1(Sha1::digest(&out).into());
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

/// Encodes one entry by itself.
pub fn encode_entry(header: &Header, data: &[u8]) -> Vec<u8> {
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
