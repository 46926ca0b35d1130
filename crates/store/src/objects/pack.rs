//! Packs, version 2: objects in, the bytes of a pack and of its index out. Nothing here touches the disk.
//!
//! gix reads packs but has no writer that lets us choose deltas inside a batch and the order of fsync, so this is ours.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, path::Path, path::PathBuf};

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};
use gix::odb::{pack, pack::data::decode::header::ResolvedBase, pack::data::entry::Header};
use gix::{ObjectId, hash::Kind as HashKind, objs::Kind, zlib::Inflate};
use sha1::{Digest as _, Sha1};
use zlib_rs::adler32::adler32;

use crate::machine::{disk::DiskError, disk::list_dir};
use crate::{error::StoreError, objects::delta::encode_delta, objects::spot::Filter, objects::spot::Known};

const HEADER_BYTES: usize = 12;
/// The most differences that lead to any object, through however many folds it went: a reader has to walk all of them.
/// Git itself stops here, and breaks longer chains when it sends them.
pub const MAX_CHAIN: usize = 50;
/// What is written as it is: most commits, and most differences between versions of a directory or a set of signatures.
/// They hardly get smaller, and to make the compressor ready for each would cost more than all else: with a bound of
/// 192, a signature took 14 µs here instead of 1.6, for a tenth less on disk. Blobs are also read as they lie, and most
/// are small: up to [`MAX_BYTES`] they are larger on disk, and several times as fast to read. Directories are mostly
/// ids, which do not get smaller: where one block holds them, they lie as they are. Folding makes differences of most.
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
        Header::Blob => MAX_BYTES,
        Header::Tree => MAX_BLOCK,
        Header::Commit | Header::Tag | Header::RefDelta { .. } | Header::OfsDelta { .. } => MAX_STORED,
    };
    if data.len() <= max_stored {
        return append(data, out);
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

// An open pack, and what lies in it as it is.

pub struct Pack {
    /// A number that this process gives to each pack that it opens, and to no other one.
    pub(crate) number: u64,
    /// The file without `.pack` or `.idx`.
    pub(crate) stem: PathBuf,
    pub bundle: pack::Bundle,
    filter: Filter,
}

impl Pack {
    pub fn open(stem: PathBuf) -> Result<Self, StoreError> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let index = stem.with_extension("idx");
        let bundle = pack::Bundle::at(&index, HashKind::Sha1)
            .map_err(|error| StoreError::corrupt(index.display(), error))?;
        let ids = (0..bundle.index.num_objects()).map(|at| bundle.index.oid_at_index(at));
        let filter = Filter::of(bundle.index.num_objects() as usize, ids);
        Ok(Self { number: OPENED.fetch_add(1, Ordering::Relaxed), stem, bundle, filter })
    }

    /// Bounds what is read from the pack: nothing larger than `max_bytes`.
    pub(crate) fn bounded(mut self, max_bytes: usize) -> Self {
        self.bundle.pack = self.bundle.pack.with_alloc_limit_bytes(Some(max_bytes));
        self
    }

    /// The position of an object in the pack's index.
    pub(crate) fn find(&self, id: &ObjectId) -> Option<u32> {
        if self.filter.may_contain(id) { self.bundle.index.lookup(id) } else { None }
    }

    /// What there is to note about an object, by where in the index it is.
    pub(crate) fn known(&self, at: u32) -> Known {
        Known::At { pack: self.number, offset: self.bundle.index.pack_offset_at_index(at) }
    }

    /// How large an object is, by its position in the index. Reads the beginning of it alone.
    pub(crate) fn size(&self, at: u32, inflate: &mut Inflate) -> Result<u64, gix::Error> {
        let pack::Bundle { index, pack } = &self.bundle;
        let entry = pack.entry(index.pack_offset_at_index(at))?;
        let base = |id: &gix::oid| {
            let offset = index.lookup(id).map(|at| index.pack_offset_at_index(at));
            let entry = offset.map(|offset| pack.entry(offset)).transpose()?;
            Ok::<_, gix::Error>(entry.map(ResolvedBase::InPack))
        };
        Ok(pack.decode_header(entry, inflate, &base)?.object_size)
    }

    /// The content of a blob that lies at this offset as it is.
    pub(crate) fn stored(&self, offset: u64) -> Option<&[u8]> {
        let entry = self.bundle.pack.entry(offset).ok()?;
        let bytes = usize::try_from(entry.decompressed_size).ok().filter(|bytes| *bytes <= MAX_BYTES)?;
        let stream_end = entry.data_offset + encoded_len(bytes) as u64;
        let content = content(self.bundle.pack.entry_slice(entry.data_offset..stream_end)?)?;
        (entry.header == Header::Blob && content.len() == bytes).then_some(content)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bundle.pack.data_len() as u64
    }
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pack").field(&self.stem).finish()
    }
}

/// The packs in a directory, without their endings.
pub(crate) fn list_packs(dir: &Path) -> Result<Vec<PathBuf>, DiskError> {
    let indexes =
        list_dir(dir)?.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "idx"));
    Ok(indexes.map(|path| path.with_extension("")).collect())
}

// Content that lies in a pack as it is: a zlib stream of one block that is not compressed. Writing it costs a copy, and
// so does reading it, since the pack is in memory wherever someone reads it.

/// The most bytes that one such block can hold.
pub const MAX_BLOCK: usize = u16::MAX as usize;
/// Files that are larger are worth compressing.
pub const MAX_BYTES: usize = 4_096;
/// A header for small windows and no preset dictionary, then "the last block, as it is".
const BEGINNING: [u8; 3] = [0x78, 0x01, 0x01];
/// The beginning, and the length with its complement.
const HEAD_BYTES: usize = BEGINNING.len() + 4;
const CHECKSUM_BYTES: usize = 4;

pub fn append(data: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(data.len()).expect("at most MAX_BLOCK");
    out.extend_from_slice(&BEGINNING);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&checksum(data));
}

/// How many bytes `append` makes of `bytes`.
pub fn encoded_len(bytes: usize) -> usize {
    HEAD_BYTES + bytes + CHECKSUM_BYTES
}

/// The content of a stream that `append` made; `None` for any other, or where it is damaged.
pub fn content(stream: &[u8]) -> Option<&[u8]> {
    let (head, rest) = stream.split_at_checked(HEAD_BYTES)?;
    let &[a, b] = head.strip_prefix(&BEGINNING)?.first_chunk::<2>()?;
    let length = u16::from_le_bytes([a, b]);
    let (data, sum) = rest.split_at_checked(usize::from(length))?;
    let is_whole =
        head.ends_with(&(!length).to_le_bytes()) && data.len() <= MAX_BYTES && sum == checksum(data);
    is_whole.then_some(data)
}

fn checksum(data: &[u8]) -> [u8; CHECKSUM_BYTES] {
    adler32(1, data).to_be_bytes()
}
