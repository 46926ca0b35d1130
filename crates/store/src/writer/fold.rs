//! Folding packs. Every batch leaves a pack, and every pack costs each reader a look; so many small ones become one
//! larger one, in the background. Each batch also leaves a whole copy of every directory that it touched. Here they
//! come together, and all but a few become differences: without that, wide directories would fill the disk.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::{io, io::BufWriter, io::Write, ops::RangeInclusive, path::Path, path::PathBuf};

use countersign_core::values::bounds;
use gix::odb::pack::{data, data::entry::Header, index};
use gix::{ObjectId, objs::Kind, zlib::Inflate};
use sha1::{Digest as _, Sha1};

use crate::machine::{clock::JoinedThread, disk::Disk, disk::DiskError, disk::unfinished};
use crate::objects::folded::{FoldList, Folded, is_kept};
use crate::objects::pack::{IndexEntry, MAX_CHAIN, Pack, encode_entry, encode_index, header};
use crate::objects::{Objects, delta::encode_delta, folded, pack};
use crate::{error::StoreError, repository::finish_pack};

/// How many packs of similar size are folded into one.
const FOLD_AT: usize = 16;
/// The size above which folding costs more than it gains.
const MAX_BYTES: u64 = 1 << 31;

/// The size below which directories are not worth the work.
const MIN_TREE_BYTES: u64 = 1_024;
/// The sizes of files that are worth the work. Smaller ones are read as they lie in a pack. Larger ones than we store
/// are someone else's, and could be of any size.
const FILE_BYTES: RangeInclusive<u64> = pack::MAX_BYTES as u64 + 1..=bounds::FILE_BYTES as u64;

/// The thread that folds. Dropping it stops the work under way and waits for the thread.
#[derive(Debug)]
pub(crate) struct Folder {
    wake: SyncSender<()>,
    stop: Arc<AtomicBool>,
    _thread: JoinedThread,
}

/// What the thread works on.
#[derive(Debug, Clone)]
struct FoldWork {
    objects: Arc<Objects>,
    disk: Disk,
    pack_dir: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Folder {
    pub(crate) fn start(objects: Arc<Objects>, disk: Disk, pack_dir: PathBuf) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let work = FoldWork { objects, disk, pack_dir, stop: Arc::clone(&stop) };
        // One place is enough: a caller who finds it taken knows that the thread will look again.
        let (wake, woken) = sync_channel(1);
        Ok(Self { wake, stop, _thread: JoinedThread::start("store-fold", move || work.run(&woken))? })
    }

    /// Tells the thread that there are more packs than before. Never waits.
    pub(crate) fn wake(&self) {
        let _ = self.wake.try_send(());
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The fields are dropped after this: the thread is woken no more, and waited for.
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl FoldWork {
    fn run(&self, woken: &Receiver<()>) {
        let mut folded = Folded::load(&self.pack_dir).unwrap_or_default();
        while woken.recv().is_ok() {
            while let Some(sources) = plan(&self.objects.packs()) {
                match self.fold(&sources) {
                    Ok(list) => {
                        folded.lists.push_back(list);
                        let used = self.objects.packs().iter().map(|pack| pack.bytes()).sum();
                        folded.remove_excess(&self.disk, used);
                    }
                    Err(_) if self.stop.load(Ordering::Relaxed) => return,
                    Err(error) => {
                        // The old packs are all still there, so nothing is lost but speed; the next batch tries again.
                        tracing::warn!(%error, source = std::error::Error::source(&error), "packs were not folded");
                        break;
                    }
                }
            }
        }
    }

    /// The new pack is durable before the old ones are let go of, and those stay for a while. A crash at any
    /// moment leaves some objects twice at most, which is allowed, and which a later fold ends.
    fn fold(&self, sources: &[Arc<Pack>]) -> Result<FoldList, StoreError> {
        let partial = unfinished(&self.pack_dir.join("fold"), "pack");
        let written = self.write_folded(sources, &partial);
        if written.is_err() {
            let _ = self.disk.remove(&partial);
        }
        let (id, index) = written?;
        let stem = self.pack_dir.join(format!("pack-{id}"));
        let others: Vec<&Pack> = sources.iter().map(Arc::as_ref).filter(|pack| pack.stem != stem).collect();
        if others.len() < sources.len() && folded::is_whole(&stem) {
            // One of them has everything already, unless `git gc` has removed it.
            self.disk.remove(&partial)?;
            let list = FoldList::write(&self.disk, &stem, &others)?;
            self.objects.replace(sources, Pack::open(stem)?);
            return Ok(list);
        }
        let finished = self.finish_folded(&partial, &stem, &others, encode_index(index, id));
        if finished.is_err() {
            // If it cannot be removed now, the next start removes it. Until then it does no harm.
            let _ = self.disk.remove(&partial).and_then(|()| self.discard(&stem));
            self.objects.rescan()?;
        }
        let list = finished?;
        self.objects.replace(sources, Pack::open(stem)?);
        Ok(list)
    }

    fn write_folded(
        &self,
        sources: &[Arc<Pack>],
        partial: &Path,
    ) -> Result<(ObjectId, Vec<IndexEntry>), StoreError> {
        self.disk.remove(partial)?;
        let fail = |source| DiskError::new("write", partial, source);
        let mut out = BufWriter::with_capacity(1 << 18, self.disk.create_new(partial)?);
        let written = concatenate(sources, &mut out, &self.stop).map_err(fail)?;
        out.into_inner().map_err(|error| fail(error.into_error()))?.sync()?;
        Ok(written)
    }

    /// Names the new pack. With the last of the names, that of the index, the list is in force as well.
    fn finish_folded(
        &self,
        partial: &Path,
        stem: &Path,
        sources: &[&Pack],
        index: Vec<u8>,
    ) -> Result<FoldList, DiskError> {
        let new_index = unfinished(stem, "idx");
        self.disk.remove(&new_index)?;
        self.disk.write_new(&new_index, &index)?;
        let list = FoldList::write(&self.disk, stem, sources)?;
        self.disk.rename(partial, &unfinished(stem, "pack"))?;
        finish_pack(&self.disk, stem)?;
        Ok(list)
    }

    /// Removes a pack that could not be finished. The list goes first, since it must not be believed from here on; the
    /// unfinished index goes last, since it shows that the pack is ours.
    fn discard(&self, stem: &Path) -> Result<(), DiskError> {
        for ending in [folded::ENDING, "pack", "idx"] {
            self.disk.remove(&stem.with_extension(ending))?;
        }
        self.disk.remove(&unfinished(stem, "pack"))?;
        self.disk.remove(&unfinished(stem, "idx"))
    }
}

/// The packs to fold next: enough of one size class, the smallest first.
fn plan(packs: &[Arc<Pack>]) -> Option<Vec<Arc<Pack>>> {
    let mut tiers: HashMap<u32, Vec<Arc<Pack>>> = HashMap::new();
    for pack in packs.iter().filter(|pack| pack.bytes() < MAX_BYTES && !is_kept(&pack.stem)) {
        tiers.entry(tier(pack.bytes())).or_default().push(Arc::clone(pack));
    }
    let full = tiers.into_iter().filter(|(_, packs)| packs.len() >= FOLD_AT);
    full.min_by_key(|(tier, _)| *tier).map(|(_, packs)| packs)
}

/// Classes of sixteen times the size, from 1 MiB on.
fn tier(bytes: u64) -> u32 {
    bytes.max(1).ilog2().saturating_sub(16) / 4
}

/// Writes one pack with all objects of `sources`, each once. Most compressed data is copied as it is; only the distance
/// from a difference to its base is written anew, since entries that occur twice are left out. Whole copies of a
/// directory or a larger file become differences to the version before. An object's base lies in the same source or an
/// earlier one: it always comes before.
pub fn concatenate(
    sources: &[Arc<Pack>],
    out: &mut dyn Write,
    stop: &AtomicBool,
) -> io::Result<(ObjectId, Vec<IndexEntry>)> {
    let distinct: HashSet<ObjectId> =
        sources.iter().flat_map(|pack| pack.bundle.index.iter()).map(|entry| entry.oid).collect();
    let mut new = NewPack {
        out,
        checksum: Sha1::new(),
        written: 0,
        index: Vec::with_capacity(distinct.len()),
        offsets: HashMap::with_capacity(distinct.len()),
        versions: Versions::default(),
        inflate: Inflate::default(),
    };
    new.write(&header(distinct.len()))?;
    for pack in sources {
        new.append_pack(pack, stop)?;
    }
    let id = ObjectId::Sha1(new.checksum.finalize().into());
    new.out.write_all(id.as_slice())?;
    Ok((id, new.index))
}

/// A pack that is being written.
struct NewPack<'a> {
    out: &'a mut dyn Write,
    /// The checksum of what was written.
    checksum: Sha1,
    written: u64,
    index: Vec<IndexEntry>,
    offsets: HashMap<ObjectId, u64>,
    versions: Versions,
    /// The decompressor. It is larger than most of what it decompresses, so it is used again.
    inflate: Inflate,
}

impl NewPack<'_> {
    fn append_pack(&mut self, pack: &Pack, stop: &AtomicBool) -> io::Result<()> {
        let data = &pack.bundle.pack;
        let mut entries: Vec<_> = pack.bundle.index.iter().collect();
        entries.sort_unstable_by_key(|entry| entry.pack_offset);
        let mut moved: Vec<(u64, u64)> = Vec::with_capacity(entries.len());
        let heights = chain_heights(pack, &entries);
        let ends = entries.iter().skip(1).map(|next| next.pack_offset).chain([data.pack_end() as u64]);
        for ((entry, end), height) in entries.iter().zip(ends).zip(heights) {
            if stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let start = entry.pack_offset;
            if let Some(&offset) = self.offsets.get(&entry.oid) {
                moved.push((start, offset));
                continue;
            }
            let raw = data.entry_slice(start..end).ok_or_else(|| damaged(pack))?;
            // Bits that rotted must not be copied with a fresh checksum over them.
            if entry.crc32.is_some_and(|expected| crc32fast::hash(raw) != expected) {
                return Err(damaged(pack));
            }
            let offset = self.written;
            let parsed = data.entry(start).map_err(|_| damaged(pack))?;
            let changed = match parsed.header {
                Header::OfsDelta { base_distance } => {
                    let base = start.checked_sub(base_distance).ok_or_else(|| damaged(pack))?;
                    let at = moved.binary_search_by_key(&base, |(old, _)| *old).map_err(|_| damaged(pack))?;
                    let mut bytes = Vec::with_capacity(raw.len() + 8);
                    let header = Header::OfsDelta { base_distance: offset - moved[at].1 };
                    header.write_to(parsed.decompressed_size, &mut bytes)?;
                    bytes.extend_from_slice(&raw[parsed.header_size()..]);
                    Some(bytes)
                }
                Header::Tree if parsed.decompressed_size >= MIN_TREE_BYTES => {
                    self.shorten(pack, &parsed, Whole { kind: Kind::Tree, height, bytes: raw.len() })?
                }
                Header::Blob if FILE_BYTES.contains(&parsed.decompressed_size) => {
                    self.shorten(pack, &parsed, Whole { kind: Kind::Blob, height, bytes: raw.len() })?
                }
                Header::Commit | Header::Tree | Header::Blob | Header::Tag | Header::RefDelta { .. } => None,
            };
            let bytes = changed.as_deref().unwrap_or(raw);
            self.write(bytes)?;
            let crc32 = crc32fast::hash(bytes);
            moved.push((start, offset));
            self.offsets.insert(entry.oid, offset);
            self.index.push(IndexEntry { id: entry.oid, crc32, offset });
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// A whole object as a difference, where that is less than it takes now.
    fn shorten(
        &mut self,
        pack: &Pack,
        entry: &data::Entry,
        Whole { kind, height, bytes }: Whole,
    ) -> io::Result<Option<Vec<u8>>> {
        let size = usize::try_from(entry.decompressed_size).map_err(|_| damaged(pack))?;
        let mut content = vec![0; size];
        let decompressed = pack.bundle.pack.decompress_entry(entry, &mut self.inflate, &mut content);
        decompressed.map_err(|_| damaged(pack))?;
        let shorter = self.versions.shorten(kind, content, self.written, height);
        Ok(shorter.filter(|shorter| shorter.len() < bytes))
    }
}

/// An object that is no difference.
struct Whole {
    kind: Kind,
    /// How many differences it bears, one upon the other.
    height: usize,
    bytes: usize,
}

/// How many differences build upon each of a pack's entries, which are sorted by offset, if the entry is whole. What is
/// damaged is found where it is copied.
fn chain_heights(pack: &Pack, entries: &[index::Entry]) -> Vec<usize> {
    let mut heights = vec![0; entries.len()];
    // Of each entry, the whole one below it, and how many differences lead there.
    let mut below: Vec<(usize, usize)> = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        let parsed = pack.bundle.pack.entry(entry.pack_offset);
        let base = match parsed.map(|parsed| parsed.header) {
            Ok(Header::OfsDelta { base_distance }) => entry.pack_offset.checked_sub(base_distance),
            Ok(Header::Commit | Header::Tree | Header::Blob | Header::Tag | Header::RefDelta { .. })
            | Err(_) => None,
        };
        let find = |base| entries[..at].binary_search_by_key(&base, |entry| entry.pack_offset).ok();
        let (root, depth) = match base.and_then(find) {
            Some(base) => (below[base].0, below[base].1 + 1),
            None => (at, 0),
        };
        heights[root] = heights[root].max(depth);
        below.push((root, depth));
    }
    heights
}

fn damaged(pack: &Pack) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} is damaged", pack.stem.display()))
}

// Versions of a directory or a file, as they come by in a fold: all but a few become differences to the one before.

/// What is remembered of all versions together.
pub const MAX_VERSION_BYTES: usize = 32 << 20;
const ID_BYTES: usize = 20;
/// A signature or a digest is on a line of such a length, and no other file has the same. A key alone makes a shorter
/// one: all files that the same people signed have these.
const LONG_LINE: usize = 80;

/// The newest version of each directory and file that came by.
#[derive(Debug, Default)]
pub struct Versions {
    /// A difference has the kind of its base, so versions of one kind are never taken for those of another.
    pub newest: HashMap<(Kind, u64), Version>,
    pub bytes: usize,
    /// A hasher whose key is drawn anew each time, so that a stranger cannot make files that seem to be versions of
    /// each other, or versions that do not.
    hasher: RandomState,
}

#[derive(Debug)]
pub struct Version {
    pub content: Vec<u8>,
    offset: u64,
    /// How many differences lead from a whole copy to it.
    depth: usize,
}

impl Versions {
    /// The entry of an object, which will be at `place`, as a difference to the version before. Upon it there will be
    /// as many differences as `height` says. Where versions are not known as such, nothing is lost but the saving.
    pub fn shorten(&mut self, kind: Kind, content: Vec<u8>, offset: u64, height: usize) -> Option<Vec<u8>> {
        let likeness = (kind, self.likeness(kind, &content)?);
        if self.bytes > MAX_VERSION_BYTES {
            *self = Self { hasher: self.hasher.clone(), ..Self::default() };
        }
        let before = self.newest.get(&likeness).filter(|before| before.depth + height < MAX_CHAIN);
        let delta = before.map(|before| (before, encode_delta(&before.content, &content)));
        let shorter = delta.filter(|(_, delta)| delta.len() < content.len() / 2).map(|(before, delta)| {
            let header = Header::OfsDelta { base_distance: offset - before.offset };
            (before.depth + 1, encode_entry(&header, &delta))
        });
        let (depth, bytes) = shorter.map_or((0, None), |(depth, bytes)| (depth, Some(bytes)));
        self.bytes += content.len();
        let replaced = self.newest.insert(likeness, Version { content, offset, depth });
        self.bytes -= replaced.map_or(0, |replaced| replaced.content.len());
        bytes
    }

    /// What versions of one thing have in common, and different things have not: one of the entries of a directory, or
    /// one of the long lines of a file, chosen by chance from all of them. Another one more, wherever it stands, seldom
    /// becomes the chosen one, and strangers do not know which one it is.
    fn likeness(&self, kind: Kind, content: &[u8]) -> Option<u64> {
        match kind {
            Kind::Tree => entries(content).map(|entry| self.hasher.hash_one(entry)).min(),
            Kind::Blob => {
                let long = content.split(|byte| *byte == b'\n').filter(|line| line.len() >= LONG_LINE);
                long.map(|line| self.hasher.hash_one(line)).min()
            }
            Kind::Commit | Kind::Tag => None,
        }
    }
}

/// The entries of a directory: a mode, a name, a NUL and an id. What cannot be told apart is not an entry.
fn entries(tree: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = tree;
    std::iter::from_fn(move || {
        let end = rest.iter().position(|byte| *byte == 0)? + 1 + ID_BYTES;
        let (entry, behind) = rest.split_at_checked(end)?;
        rest = behind;
        Some(entry)
    })
}
