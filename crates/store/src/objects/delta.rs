//! Differences between two versions of an object, as packs have them: what to copy from the base, and what to insert.

use std::{cmp::min, collections::HashMap, hash::Hash, ops::Range, sync::Arc};

use gix::{objs::Kind, odb::pack::cache::DecodeEntry};

/// The most bytes that one copy instruction can hold.
const MAX_COPY: usize = 0xff_ffff;
const MAX_INSERT: usize = 0x7f;
/// What is left between beginning and end is searched for lines of the base only where it is longer. Versions in a
/// batch mostly differ in one place, and to search would cost more than it gains.
const MIN_SEARCHED: usize = 512;
/// The shortest line that is looked for. Shorter ones are found where a run goes on: an instruction is as long as they
/// are.
const MIN_LINE: usize = 24;

/// A part of the target, and where its bytes are.
#[derive(Debug, Clone, Copy)]
struct Part {
    from: Side,
    offset: usize,
    length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Base,
    Target,
}

/// Encodes `target` as a difference to `base`. What both begin and end with is copied. What lies between is compared
/// line by line, since our documents have a line for each thing that they list. In a directory the bytes of a line
/// break occur every few hundred bytes, and serve as well.
pub fn encode_delta(base: &[u8], target: &[u8]) -> Vec<u8> {
    let prefix = common_prefix(base, target);
    let suffix = common_suffix(&base[prefix..], &target[prefix..]);
    let middle = target.len() - prefix - suffix;
    let mut parts = Vec::new();
    push(&mut parts, Part { from: Side::Base, offset: 0, length: prefix });
    if middle < MIN_SEARCHED {
        push(&mut parts, Part { from: Side::Target, offset: prefix, length: middle });
    } else {
        let searched = Stretch { whole: base, range: prefix..base.len() - suffix };
        push_lines(&mut parts, searched, Stretch { whole: target, range: prefix..target.len() - suffix });
    }
    push(&mut parts, Part { from: Side::Base, offset: base.len() - suffix, length: suffix });
    encode_parts(base.len(), target, &parts)
}

/// A range of a whole.
struct Stretch<'a> {
    whole: &'a [u8],
    range: Range<usize>,
}

/// The lines of a stretch of the target, from wherever they are in that of the base.
fn push_lines(parts: &mut Vec<Part>, searched: Stretch<'_>, wanted: Stretch<'_>) {
    let Stretch { whole: base, range: searched } = searched;
    let Stretch { whole: target, range: wanted } = wanted;
    let is_end = |byte: &u8| *byte == b'\n';
    let mut offsets: HashMap<&[u8], usize> = HashMap::new();
    let mut at = searched.start;
    for line in base[searched.clone()].split_inclusive(is_end) {
        if line.len() >= MIN_LINE {
            offsets.entry(line).or_insert(at);
        }
        at += line.len();
    }
    // Where the base goes on behind the line before.
    let (mut next, mut offset) = (searched.start, wanted.start);
    for line in target[wanted].split_inclusive(is_end) {
        let length = line.len();
        let found =
            if base[next..searched.end].starts_with(line) { Some(next) } else { offsets.get(line).copied() };
        match found {
            Some(at) => {
                push(parts, Part { from: Side::Base, offset: at, length });
                next = at + length;
            }
            None => push(parts, Part { from: Side::Target, offset, length }),
        }
        offset += length;
    }
}

/// Adds a part, to the one before where it continues that.
fn push(parts: &mut Vec<Part>, part: Part) {
    match parts.last_mut() {
        Some(last) if last.from == part.from && last.offset + last.length == part.offset => {
            last.length += part.length;
        }
        Some(_) | None if part.length > 0 => parts.push(part),
        Some(_) | None => {}
    }
}

fn encode_parts(base_bytes: usize, target: &[u8], parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    append_size(base_bytes, &mut out);
    append_size(target.len(), &mut out);
    for part in parts {
        match part.from {
            Side::Base => append_copy(part.offset, part.length, &mut out),
            Side::Target => {
                for chunk in target[part.offset..part.offset + part.length].chunks(MAX_INSERT) {
                    out.push(chunk.len() as u8);
                    out.extend_from_slice(chunk);
                }
            }
        }
    }
    out
}

pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    blocks + a[blocks..].iter().zip(&b[blocks..]).take_while(|(a, b)| a == b).count()
}

pub(crate) fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let blocks =
        a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    let (a, b) = (&a[..a.len() - blocks], &b[..b.len() - blocks]);
    blocks + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

fn append_size(mut size: usize, out: &mut Vec<u8>) {
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

fn append_copy(mut offset: usize, mut size: usize, out: &mut Vec<u8>) {
    while size > 0 {
        let now = min(size, MAX_COPY);
        let instruction = out.len();
        out.push(0x80);
        // Only the bytes that are not zero are written; the bits of the instruction say which.
        let bytes = (0..4).map(|i| (offset >> (8 * i)) as u8).chain((0..3).map(|i| (now >> (8 * i)) as u8));
        for (bit, byte) in bytes.enumerate().filter(|(_, byte)| *byte != 0) {
            out[instruction] |= 1 << bit;
            out.push(byte);
        }
        offset += now;
        size -= now;
    }
}

// What one reader has read lately. The next version of a directory or a file is often a difference to the one before: a
// reader that goes through the history undoes one difference instead of up to 50.

/// Objects by key. What was not asked for lately is forgotten first.
#[derive(Debug)]
pub(crate) struct RecentObjects<K> {
    young: HashMap<K, RecentObject>,
    old: HashMap<K, RecentObject>,
    /// Bytes of the young objects. They become the old ones when they have half of all.
    bytes: usize,
    max_bytes: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct RecentObject {
    kind: Kind,
    packed_bytes: usize,
    content: Arc<[u8]>,
}

/// Objects by the number of a pack and the place in it.
pub(crate) type DeltaBases = RecentObjects<(u64, u64)>;

/// The bases that lie in one pack.
#[derive(Debug)]
pub(crate) struct BasesInPack<'a> {
    pub(crate) bases: &'a mut DeltaBases,
    /// Our number of the pack. Those of gix are short, and two packs may have the same.
    pub(crate) pack: u64,
}

impl<K: Hash + Eq + Clone> RecentObjects<K> {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), bytes: 0, max_bytes }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<RecentObject> {
        if let Some(object) = self.young.get(key) {
            return Some(object.clone());
        }
        let object = self.old.remove(key)?;
        self.insert(key.clone(), object.clone());
        Some(object)
    }

    pub(crate) fn insert(&mut self, key: K, object: RecentObject) {
        if self.bytes + object.content.len() > self.max_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += object.content.len();
        self.young.insert(key, object);
    }
}

impl RecentObject {
    pub(crate) fn tree(content: Arc<[u8]>) -> Self {
        Self { kind: Kind::Tree, packed_bytes: 0, content }
    }

    pub(crate) fn into_content(self) -> Arc<[u8]> {
        self.content
    }
}

impl DecodeEntry for BasesInPack<'_> {
    fn put(&mut self, _: u32, offset: u64, data: &[u8], kind: Kind, packed_bytes: usize) {
        let object = RecentObject { kind, packed_bytes, content: data.into() };
        self.bases.insert((self.pack, offset), object);
    }

    fn get(&mut self, _: u32, offset: u64, out: &mut Vec<u8>) -> Option<(Kind, usize)> {
        let object = self.bases.get(&(self.pack, offset))?;
        out.clear();
        out.extend_from_slice(&object.content);
        Some((object.kind, object.packed_bytes))
    }
}
