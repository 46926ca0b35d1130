//! Reading objects. Readers share one list of open packs, which is replaced as a whole when packs come or go. No reader
//! waits, and a pack that was folded away stays readable for those who still hold the old list.

pub mod commit;
pub mod delta;
pub mod folded;
pub mod pack;
pub mod spot;

use std::sync::{Arc, Mutex, RwLock};
use std::{cell::RefCell, collections::HashMap, fmt, mem, path::Path, path::PathBuf};

use arc_swap::ArcSwap;
use bytes::Bytes;
use countersign_core::values::bounds::FILE_BYTES;
use gix::odb::{loose, pack as odb_pack};
use gix::{ObjectId, hash::Kind as HashKind, hashtable, objs::Kind, zlib::Inflate};
use quick_cache::sync::Cache;

use crate::error::StoreError;
use crate::machine::clock::{lock, read, write};
use crate::objects::pack::{Pack, PackObject, list_packs};
use crate::objects::spot::{ByBytes, Known, ParsedObjects, Spot};
use crate::objects::{commit::Commit, delta::BasesInPack, delta::DeltaBases, folded::Folded};

/// How large an object may be for a check: what a stranger made could be a thousand times as large as its file. Stored
/// files have some megabytes, and a directory of a million names has 50, three times that while a difference is undone.
const MAX_CHECKED_BYTES: usize = 256 << 20;
/// How often we look again at a directory whose packs are being replaced. `git gc` replaces them once.
const MAX_LOOKS: usize = 16;

/// The id of an object; `None` where the content was made to collide.
pub fn hash(kind: Kind, bytes: &[u8]) -> Option<ObjectId> {
    gix::objs::compute_hash(HashKind::Sha1, kind, bytes).ok()
}

pub(crate) struct Objects {
    /// The directories of packs: our own, and those of repositories that this one borrows from.
    pack_dirs: Vec<PathBuf>,
    /// The open packs, sorted by number.
    packs: ArcSwap<Vec<Arc<Pack>>>,
    /// A lock that is held while the list is replaced, so that no replacement is lost.
    replacing: Mutex<()>,
    /// Loose objects. We never write them, but a repository that was pushed or repaired by hand may have some.
    loose: Vec<loose::Store>,
    recent: Cache<ObjectId, Arc<[u8]>, ByBytes>,
    pub(crate) parsed: ParsedObjects,
    /// Blobs of changes that are decided and not yet published: only the writer's own head names them.
    staged: RwLock<HashMap<ObjectId, Arc<[u8]>>>,
    /// Objects that are published, and will be in the next pack: a node writes them to disk in groups.
    held: RwLock<HashMap<ObjectId, (Kind, Bytes)>>,
    /// Whether what is read must hash to its id. The server trusts its disk; a check does not.
    pub(crate) verifies: bool,
}

struct FoundObject {
    kind: Kind,
    data: Vec<u8>,
}

thread_local! {
    // The state of a decompressor is far larger than what it usually decompresses here.
    static INFLATE: RefCell<Inflate> = RefCell::default();
}

impl Objects {
    /// Opens the objects in these directories. A check `verifies` them.
    pub(crate) fn open(dirs: &[PathBuf], cache_bytes: u64, verifies: bool) -> Result<Self, StoreError> {
        let packs = dirs.iter().map(|dir| dir.join("pack"));
        let objects = Self {
            // A copy that someone made may lack the directory; our own repository may not.
            pack_dirs: packs.filter(|dir| !verifies || dir.is_dir()).collect(),
            packs: ArcSwap::default(),
            replacing: Mutex::new(()),
            loose: dirs.iter().map(|dir| open_loose(dir, verifies)).collect(),
            recent: Cache::with_weighter((cache_bytes / 2_048) as usize, cache_bytes, ByBytes),
            parsed: ParsedObjects::new(),
            staged: RwLock::default(),
            held: RwLock::default(),
            verifies,
        };
        objects.rescan()?;
        Ok(objects)
    }

    pub(crate) fn packs(&self) -> Arc<Vec<Arc<Pack>>> {
        self.packs.load_full()
    }

    /// The content of a blob, to be sent away. `spot` is where it was found before, if it was; it is corrected where
    /// packs have come and gone. What lies in a pack as it is needs no place in the cache: it is small, and a copy
    /// costs less than to count who still reads it where it lies.
    pub(crate) fn content(&self, id: &ObjectId, spot: Option<&Spot>) -> Result<Bytes, StoreError> {
        match self.find_stored(id, spot, Bytes::copy_from_slice) {
            Some(content) => Ok(content),
            None => self.blob(id).map(Bytes::from_owner),
        }
    }

    /// The content of a blob, if it needs neither decompression nor a look into each pack.
    pub(crate) fn cached_content(&self, id: &ObjectId, spot: Option<&Spot>, most: usize) -> Option<Bytes> {
        let stored = self.find_stored(id, spot, Bytes::copy_from_slice);
        stored.or_else(|| self.recent.get(id).filter(|blob| blob.len() <= most).map(Bytes::from_owner))
    }

    /// The content of a blob, shared, to work with. Where no pack is known to hold it, it was perhaps just written, and
    /// is in the cache.
    pub(crate) fn blob_at(&self, id: &ObjectId, spot: Option<&Spot>) -> Result<Arc<[u8]>, StoreError> {
        let spot = spot.filter(|spot| matches!(spot.known(), Known::At { .. }));
        match self.find_stored(id, spot, |content| Arc::from(content)) {
            Some(content) => Ok(content),
            None => self.blob(id),
        }
    }

    /// The place of every object of every pack.
    pub(crate) fn spots(&self) -> hashtable::HashMap<ObjectId, Spot> {
        let packs = self.packs.load();
        let mut spots = hashtable::HashMap::default();
        spots.reserve(packs.iter().map(|pack| pack.bundle.index.num_objects() as usize).sum());
        for pack in packs.iter() {
            let index = &pack.bundle.index;
            for at in 0..index.num_objects() {
                spots.insert(index.oid_at_index(at).to_owned(), Spot::of(pack.known(at)));
            }
        }
        spots
    }

    pub(crate) fn blob(&self, id: &ObjectId) -> Result<Arc<[u8]>, StoreError> {
        if let Some(blob) = self.recent.get(id) {
            return Ok(blob);
        }
        if self.verifies
            && let Some(bytes) = self.size(id)?
        {
            check_file_size(id, bytes)?;
        }
        let found = match self.find_packed(id, None)? {
            Some(found) => found,
            None => {
                if let Some(blob) = read(&self.staged).get(id) {
                    return Ok(Arc::clone(blob));
                }
                self.find_elsewhere(id)?
            }
        };
        let blob: Arc<[u8]> = self.check(id, found, Kind::Blob)?.into();
        self.recent.insert(*id, Arc::clone(&blob));
        Ok(blob)
    }

    /// How large an object is, told without reading all of it; `None` where it is not known yet.
    pub(crate) fn size(&self, id: &ObjectId) -> Result<Option<u64>, StoreError> {
        let packs = self.packs.load();
        if let Some((pack, at)) = find_newest(&packs, id) {
            let size = INFLATE.with_borrow_mut(|inflate| pack.size(at, inflate));
            return size.map(Some).map_err(|error| explain(id, error));
        }
        for loose in &self.loose {
            if let Some((size, _)) = loose.try_header(id).map_err(|error| explain(id, error))? {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    /// An object that is not worth keeping in the cache of blobs.
    pub(crate) fn read(&self, id: &ObjectId, kind: Kind) -> Result<Vec<u8>, StoreError> {
        self.read_after(id, kind, None)
    }

    /// Reads an object as [`Objects::read`] does, for a reader that goes through many versions.
    pub(crate) fn read_after(
        &self,
        id: &ObjectId,
        kind: Kind,
        bases: Option<&mut DeltaBases>,
    ) -> Result<Vec<u8>, StoreError> {
        let found = self.find_packed(id, bases)?.map_or_else(|| self.find_elsewhere(id), Ok)?;
        self.check(id, found, kind)
    }

    pub(crate) fn commit(&self, id: ObjectId) -> Result<Commit, StoreError> {
        Commit::parse(&self.read(&id, Kind::Commit)?).map_err(|reason| StoreError::corrupt(id, reason))
    }

    /// Reads this commit and those before it, newest first, however old.
    pub(crate) fn history(
        &self,
        newest: ObjectId,
    ) -> impl Iterator<Item = Result<(ObjectId, Commit), StoreError>> {
        let mut next = Some(newest);
        std::iter::from_fn(move || {
            let id = next.take()?;
            Some(self.commit(id).map(|commit| {
                next = commit.parents.first().copied();
                (id, commit)
            }))
        })
    }

    /// A commit that a stranger named; `None` if no commit has this id. Does not look at the disk again.
    pub(crate) fn find_commit(&self, id: &ObjectId) -> Result<Option<Vec<u8>>, StoreError> {
        let found = match self.find_packed(id, None)? {
            Some(found) => Some(found),
            None => self.find_loose(id)?,
        };
        let commit = found.filter(|found| found.kind == Kind::Commit);
        commit.map(|found| self.check(id, found, Kind::Commit)).transpose()
    }

    pub(crate) fn stage(&self, id: ObjectId, blob: Arc<[u8]>) {
        write(&self.staged).insert(id, blob);
    }

    /// The staged blobs will never be published.
    pub(crate) fn unstage(&self) {
        *write(&self.staged) = HashMap::new();
    }

    /// Holds objects that are published, the staged blobs among them. They are in no pack yet.
    pub(crate) fn hold(&self, objects: &[PackObject]) {
        let held = objects.iter().map(|object| (object.id, (object.kind, object.data.clone())));
        write(&self.held).extend(held);
        self.keep_staged();
    }

    /// Adds `pack`, which has what was staged or held.
    pub(crate) fn add_pack(&self, pack: Pack) {
        self.replace(&[], pack);
        self.keep_staged();
        self.release();
    }

    /// Holds nothing any more. What was held is in a pack, or gone.
    pub(crate) fn release(&self) {
        *write(&self.held) = HashMap::new();
    }

    /// Keeps what was just published in the cache, because it will be read next.
    fn keep_staged(&self) {
        let staged = mem::take(&mut *write(&self.staged));
        staged.into_iter().for_each(|(id, blob)| self.recent.insert(id, blob));
    }

    /// Puts `new` in the place of `old`, which it contains.
    pub(crate) fn replace(&self, old: &[Arc<Pack>], new: Pack) {
        let _replacing = lock(&self.replacing);
        let gone = |pack: &Arc<Pack>| pack.stem == new.stem || old.iter().any(|old| old.stem == pack.stem);
        let mut packs: Vec<_> = self.packs.load().iter().filter(|pack| !gone(pack)).cloned().collect();
        packs.push(Arc::new(new));
        packs.sort_unstable_by_key(|pack| pack.number);
        self.packs.store(Arc::new(packs));
    }

    /// Makes the list of packs agree with the directory. `git gc` beside us may put a pack there and remove others
    /// while we look: then we look again.
    pub(crate) fn rescan(&self) -> Result<(), StoreError> {
        let _replacing = lock(&self.replacing);
        for _ in 0..MAX_LOOKS {
            if let Some(mut packs) = self.open_packs()? {
                packs.sort_unstable_by_key(|pack| pack.number);
                self.packs.store(Arc::new(packs));
                return Ok(());
            }
        }
        let dirs = self.pack_dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
        Err(StoreError::corrupt(dirs, "its packs come and go faster than they can be read"))
    }

    /// All packs in the directories; `None` if one was removed after it was listed.
    fn open_packs(&self) -> Result<Option<Vec<Arc<Pack>>>, StoreError> {
        let known = self.packs.load_full();
        let mut packs = Vec::new();
        let mut stems = Vec::new();
        for dir in &self.pack_dirs {
            // In this order: a pack that is folded away between the two is then listed, rather than in neither.
            let folded = Folded::load(dir)?.into_sources();
            stems.extend(list_packs(dir)?.into_iter().filter(|stem| !folded.contains(stem)));
        }
        for stem in stems {
            if let Some(pack) = known.iter().find(|pack| pack.stem == stem) {
                packs.push(Arc::clone(pack));
                continue;
            }
            let files = ["pack", "idx"].map(|ending| stem.with_extension(ending));
            match Pack::open(stem) {
                Ok(pack) if self.verifies => packs.push(Arc::new(pack.bounded(MAX_CHECKED_BYTES))),
                Ok(pack) => packs.push(Arc::new(pack)),
                Err(_) if !files[1].exists() => return Ok(None),
                // An index alone is worth nothing: a crash left it, and the next start removes it.
                Err(_) if !files[0].exists() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(packs))
    }

    fn check(&self, id: &ObjectId, found: FoundObject, expected: Kind) -> Result<Vec<u8>, StoreError> {
        let FoundObject { kind, data } = found;
        if kind != expected {
            return Err(StoreError::corrupt(id, format!("it is a {kind}, not a {expected}")));
        }
        if self.verifies && kind == Kind::Blob {
            check_file_size(id, data.len() as u64)?;
        }
        if self.verifies && hash(kind, &data).as_ref() != Some(id) {
            return Err(StoreError::corrupt(id, "its content is damaged: it has another id"));
        }
        Ok(data)
    }

    /// A copy of a blob that lies in a pack as it is; notes where.
    fn find_stored<T>(&self, id: &ObjectId, spot: Option<&Spot>, copy: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let spot = spot?;
        let known = spot.known();
        if known == Known::Elsewhere {
            return None;
        }
        let packs = self.packs.load();
        let noted = match known {
            Known::At { pack, offset } => {
                packs.binary_search_by_key(&pack, |pack| pack.number).ok().map(|at| (&packs[at], offset))
            }
            Known::Nothing | Known::Elsewhere => None,
        };
        let (pack, offset) = match noted {
            Some(found) => found,
            None => {
                let (pack, at) = find_newest(&packs, id)?;
                spot.note(pack.known(at));
                (pack, pack.bundle.index.pack_offset_at_index(at))
            }
        };
        let content = pack.stored(offset);
        if content.is_none() {
            spot.note(Known::Elsewhere);
        }
        content.map(copy)
    }

    /// Finds an object in a pack, or on the way into one.
    fn find_packed(
        &self,
        id: &ObjectId,
        bases: Option<&mut DeltaBases>,
    ) -> Result<Option<FoundObject>, StoreError> {
        // Before the packs: what is held comes into one before it is let go of.
        let held = read(&self.held).get(id).cloned();
        if let Some((kind, data)) = held {
            return Ok(Some(FoundObject { kind, data: data.to_vec() }));
        }
        let packs = self.packs.load();
        let Some((pack, at)) = find_newest(&packs, id) else { return Ok(None) };
        let mut data = Vec::new();
        let kind = INFLATE.with_borrow_mut(|inflate| {
            let found = match bases {
                Some(bases) => {
                    let mut known = BasesInPack { bases, pack: pack.number };
                    pack.bundle.get_object_by_index(at, &mut data, inflate, &mut known)
                }
                None => pack.bundle.get_object_by_index(at, &mut data, inflate, &mut odb_pack::cache::Never),
            };
            found.map(|(data, _)| data.kind).map_err(|error| explain(id, error))
        })?;
        Ok(Some(FoundObject { kind, data }))
    }

    /// Finds an object that no known pack holds: loose, or in a pack that `git gc` made beside us.
    fn find_elsewhere(&self, id: &ObjectId) -> Result<FoundObject, StoreError> {
        if let Some(found) = self.find_loose(id)? {
            return Ok(found);
        }
        self.rescan()?;
        self.find_packed(id, None)?.ok_or_else(|| StoreError::corrupt(id, "it is missing"))
    }

    fn find_loose(&self, id: &ObjectId) -> Result<Option<FoundObject>, StoreError> {
        let mut data = Vec::new();
        for loose in &self.loose {
            let found = loose.try_find(id, &mut data).map_err(|error| explain(id, error))?;
            if let Some(kind) = found.map(|data| data.kind) {
                return Ok(Some(FoundObject { kind, data }));
            }
        }
        Ok(None)
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("packs", &self.packs.load().len()).finish_non_exhaustive()
    }
}

/// The newest pack that holds an object, and where in its index that is.
fn find_newest<'a>(packs: &'a [Arc<Pack>], id: &ObjectId) -> Option<(&'a Arc<Pack>, u32)> {
    packs.iter().rev().find_map(|pack| Some((pack, pack.find(id)?)))
}

/// Refuses a file that is larger than any server stores (D41).
fn check_file_size(id: &ObjectId, bytes: u64) -> Result<(), StoreError> {
    if bytes > FILE_BYTES as u64 {
        let reason = format!("it has {bytes} bytes, which is larger than a stored file may be: {FILE_BYTES}");
        return Err(StoreError::corrupt(id, reason));
    }
    Ok(())
}

fn explain(id: &ObjectId, error: gix::Error) -> StoreError {
    if error.is_resource_exhausted() {
        return StoreError::corrupt(id, format!("it is larger than {MAX_CHECKED_BYTES} bytes: {error}"));
    }
    StoreError::corrupt(id, error)
}

fn open_loose(dir: &Path, verifies: bool) -> loose::Store {
    let alloc_limit_bytes = verifies.then_some(MAX_CHECKED_BYTES);
    loose::Store::at_opts(dir, HashKind::Sha1, loose::Options { alloc_limit_bytes, ..Default::default() })
}
