//! Folding packs. Every batch leaves a pack, and every pack costs each reader a look; so many small ones become one
//! larger one, in the background. Each batch also leaves a whole copy of every directory that it touched. Here they come
//! together, and all but a few become differences: without that, wide directories would fill the disk.

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use gix::{
    ObjectId,
    odb::pack::data::{self, entry::Header},
    zlib::Inflate,
};

use super::{
    StoreError,
    disk::{Disk, DiskError},
    folded::{self, Folded, List, is_kept},
    git::{finish_pack, unfinished},
    objects::Objects,
    pack::{IndexEntry, encode_delta, encode_entry, encode_index, header},
    packs::Pack,
    sums::Checksum,
};

/// So many packs of similar size are folded into one.
const FOLD_AT: usize = 16;
/// Above this size folding costs more than it gains.
const MAX_BYTES: u64 = 1 << 31;

/// Smaller ones are not worth the work.
const MIN_TREE_BYTES: u64 = 1_024;
/// An entry has at least a mode, a name and an id.
const BEGINNING: usize = 48;
const MAX_TREES_BYTES: usize = 64 << 20;
/// Of whole copies that become differences in one fold. The differences inside a batch come on top.
const MAX_DEPTH: usize = 16;

/// The thread that folds. Dropping it stops the work under way and waits for the thread.
#[derive(Debug)]
pub(super) struct Folder {
    wake: Option<SyncSender<()>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread works on.
#[derive(Debug, Clone)]
struct Place {
    objects: Arc<Objects>,
    disk: Disk,
    pack_dir: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Folder {
    pub(super) fn start(objects: Arc<Objects>, disk: Disk, pack_dir: PathBuf) -> io::Result<Self> {
        // One place is enough: whoever finds it taken knows that the thread will look again.
        let (wake, woken) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let place = Place { objects, disk, pack_dir, stop: Arc::clone(&stop) };
        let thread = thread::Builder::new().name("store-fold".to_owned()).spawn(move || place.run(&woken))?;
        Ok(Self { wake: Some(wake), stop, thread: Some(thread) })
    }

    /// Tells the thread that there are more packs than before. Never waits.
    pub(super) fn wake(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Place {
    fn run(&self, woken: &Receiver<()>) {
        let mut folded = Folded::load(&self.pack_dir).unwrap_or_default();
        while woken.recv().is_ok() {
            while let Some(sources) = plan(&self.objects.packs()) {
                match self.fold(&sources) {
                    Ok(list) => {
                        folded.add(list);
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
    fn fold(&self, sources: &[Arc<Pack>]) -> Result<List, StoreError> {
        let partial = unfinished(&self.pack_dir.join("fold"), "pack");
        let written = self.write_folded(sources, &partial);
        if written.is_err() {
            let _ = self.disk.remove(&partial);
        }
        let (id, index) = written?;
        let stem = self.pack_dir.join(format!("pack-{id}"));
        let others: Vec<&Pack> = sources.iter().map(Arc::as_ref).filter(|pack| pack.stem != stem).collect();
        if others.len() < sources.len() {
            // One of them has everything already.
            self.disk.remove(&partial)?;
            let list = List::write(&self.disk, &stem, &others)?;
            self.objects.replace(sources, Pack::open(stem)?);
            return Ok(list);
        }
        let finished = self.finish_folded(&partial, &stem, &others, encode_index(index, id));
        if finished.is_err() {
            // What cannot be removed now, the next start removes; until then it is in nobody's way.
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
    ) -> Result<List, DiskError> {
        let new_index = unfinished(stem, "idx");
        self.disk.remove(&new_index)?;
        self.disk.write_new(&new_index, &index)?;
        let list = List::write(&self.disk, stem, sources)?;
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

/// Writes one pack with all objects of `sources`, each once. Compressed data is copied as it is; only the distance
/// from a difference to its base is written anew, since entries that occur twice are left out. An object's base lies
/// in the same source or, left out there, in an earlier one: it always comes before.
fn concatenate(
    sources: &[Arc<Pack>],
    out: &mut dyn Write,
    stop: &AtomicBool,
) -> io::Result<(ObjectId, Vec<IndexEntry>)> {
    let distinct: HashSet<ObjectId> =
        sources.iter().flat_map(|pack| pack.bundle.index.iter()).map(|entry| entry.oid).collect();
    let mut out = Hashing { out, checksum: Checksum::default(), written: 0 };
    out.write(&header(distinct.len()))?;
    let mut index: Vec<IndexEntry> = Vec::with_capacity(distinct.len());
    let mut places: HashMap<ObjectId, u64> = HashMap::with_capacity(distinct.len());
    let mut trees = Trees::default();
    for pack in sources {
        append_pack(pack, &mut out, (&mut index, &mut places, &mut trees), stop)?;
    }
    let id = out.checksum.finish();
    out.out.write_all(id.as_slice())?;
    Ok((id, index))
}

fn append_pack(
    pack: &Pack,
    out: &mut Hashing<'_>,
    (index, places, trees): (&mut Vec<IndexEntry>, &mut HashMap<ObjectId, u64>, &mut Trees),
    stop: &AtomicBool,
) -> io::Result<()> {
    let data = &pack.bundle.pack;
    let mut entries: Vec<_> = pack.bundle.index.iter().collect();
    entries.sort_unstable_by_key(|entry| entry.pack_offset);
    let mut moved: Vec<(u64, u64)> = Vec::with_capacity(entries.len());
    let ends = entries.iter().skip(1).map(|next| next.pack_offset).chain([data.pack_end() as u64]);
    for (entry, end) in entries.iter().zip(ends) {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let start = entry.pack_offset;
        if let Some(&place) = places.get(&entry.oid) {
            moved.push((start, place));
            continue;
        }
        let raw = data.entry_slice(start..end).ok_or_else(|| damaged(pack))?;
        // Bits that rotted must not be copied with a fresh checksum over them.
        if entry.crc32.is_some_and(|expected| crc32fast::hash(raw) != expected) {
            return Err(damaged(pack));
        }
        let place = out.written;
        let parsed = data.entry(start).map_err(|_| damaged(pack))?;
        let crc32 = match parsed.header {
            Header::OfsDelta { base_distance } => {
                let base = start.checked_sub(base_distance).ok_or_else(|| damaged(pack))?;
                let at = moved.binary_search_by_key(&base, |(old, _)| *old).map_err(|_| damaged(pack))?;
                let mut bytes = Vec::with_capacity(raw.len() + 8);
                let header = Header::OfsDelta { base_distance: place - moved[at].1 };
                header.write_to(parsed.decompressed_size, &mut bytes)?;
                bytes.extend_from_slice(&raw[parsed.header_size()..]);
                out.write(&bytes)?;
                crc32fast::hash(&bytes)
            }
            Header::Tree if parsed.decompressed_size >= MIN_TREE_BYTES => {
                let tree = inflate(pack, &parsed, &mut trees.inflate)?;
                let bytes = trees.shorten(tree, place).filter(|bytes| bytes.len() < raw.len());
                let bytes = bytes.as_deref().unwrap_or(raw);
                out.write(bytes)?;
                crc32fast::hash(bytes)
            }
            Header::Commit | Header::Tree | Header::Blob | Header::Tag | Header::RefDelta { .. } => {
                out.write(raw)?;
                crc32fast::hash(raw)
            }
        };
        moved.push((start, place));
        places.insert(entry.oid, place);
        index.push(IndexEntry { id: entry.oid, crc32, offset: place });
    }
    Ok(())
}

fn inflate(pack: &Pack, entry: &data::Entry, inflate: &mut Inflate) -> io::Result<Vec<u8>> {
    let size = usize::try_from(entry.decompressed_size).map_err(|_| damaged(pack))?;
    let mut tree = vec![0; size];
    let data = &pack.bundle.pack;
    data.decompress_entry(entry, inflate, &mut tree).map_err(|_| damaged(pack))?;
    Ok(tree)
}

/// The newest version of each directory that came by.
#[derive(Default)]
struct Trees {
    by_beginning: HashMap<[u8; BEGINNING], Version>,
    bytes: usize,
    /// Larger than most of what it decompresses, so it is used again.
    inflate: Inflate,
}

struct Version {
    tree: Vec<u8>,
    place: u64,
    /// How many differences lead from a whole copy to it.
    depth: usize,
}

impl Trees {
    /// The entry of `tree`, which will be at `place`, as a difference to the version before. Versions of a directory are
    /// known by their first entry, which seldom changes; where it does, nothing is lost but the saving.
    fn shorten(&mut self, tree: Vec<u8>, place: u64) -> Option<Vec<u8>> {
        let beginning = *tree.first_chunk::<BEGINNING>()?;
        if self.bytes > MAX_TREES_BYTES {
            *self = Self::default();
        }
        let before = self.by_beginning.get(&beginning).filter(|before| before.depth < MAX_DEPTH);
        let delta = before.map(|before| (before, encode_delta(&before.tree, &tree)));
        let shorter = delta.filter(|(_, delta)| delta.len() < tree.len() / 2).map(|(before, delta)| {
            let header = Header::OfsDelta { base_distance: place - before.place };
            (before.depth + 1, encode_entry(&header, &delta))
        });
        let (depth, bytes) = shorter.map_or((0, None), |(depth, bytes)| (depth, Some(bytes)));
        self.bytes += tree.len();
        let replaced = self.by_beginning.insert(beginning, Version { tree, place, depth });
        self.bytes -= replaced.map_or(0, |replaced| replaced.tree.len());
        bytes
    }
}

fn damaged(pack: &Pack) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} is damaged", pack.stem.display()))
}

/// Counts and hashes what passes through.
struct Hashing<'a> {
    out: &'a mut dyn Write,
    checksum: Checksum,
    written: u64,
}

impl Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}
