//! Packs that were folded into another one. They stay, since a `git fsck` or `git clone` beside a running server lists
//! the packs once, and fails where one of them is gone by the time its turn comes. To remove a few every now and then
//! would spoil it for a program that has just listed them; so all go together, at the next start or when they become
//! too many.
//!
//! Beside the new pack lies a list, `pack-….folded`, of those that it took in. It takes effect with the new pack's
//! own name. To lose it is harmless: what it named are packs with nothing new in them, which a later fold takes in.

use std::collections::{HashSet, VecDeque};
use std::{fs, fs::File, io, path::Path, path::PathBuf, time::Duration, time::SystemTime};

use gix::{hash::Kind as HashKind, odb::pack::index};

use crate::{machine::disk::Disk, machine::disk::DiskError, machine::disk::list_dir, objects::pack::Pack};

pub(crate) const ENDING: &str = "folded";
/// A reader that listed a pack before it was folded is done with it by then, also across a restart.
const GRACE: Duration = Duration::from_secs(10 * 60);
/// Each is one more for Git to look into, so there are not many.
pub const MAX_PACKS: usize = 64;
/// How many bytes can wait, on top of what the packs in use take. Folding can make little of much, so what waits is
/// bounded by itself as well.
pub const MAX_BYTES: u64 = 4 << 20;

/// What waits to be removed, oldest first.
#[derive(Debug, Default)]
pub struct Folded {
    pub lists: VecDeque<FoldList>,
}

/// One fold: the pack that it made, and those that it took in.
#[derive(Debug)]
pub struct FoldList {
    /// The path of the new pack without an ending, like those in `sources`.
    pub into: PathBuf,
    pub sources: Vec<PathBuf>,
    pub bytes: u64,
    pub since: SystemTime,
}

impl Folded {
    /// The lists that are in force in `dir`.
    pub(crate) fn load(dir: &Path) -> Result<Self, DiskError> {
        let mut lists = Vec::new();
        for path in list_dir(dir)? {
            let into = path.with_extension("");
            if path.extension().is_some_and(|ending| ending == ENDING) && is_whole(&into) {
                match read_list(&path, into) {
                    // It was due meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    list => lists.push(list.map_err(|source| DiskError::new("list", dir, source))?),
                }
            }
        }
        lists.sort_by_key(|list| list.since);
        Ok(Self { lists: lists.into() })
    }

    /// Every pack that is in another one.
    pub(crate) fn into_sources(self) -> HashSet<PathBuf> {
        self.lists.into_iter().flat_map(|list| list.sources).collect()
    }

    /// Removes what was folded long ago.
    pub(crate) fn remove_old(&mut self, disk: &Disk) {
        self.remove(disk, self.count_old(SystemTime::now()));
    }

    /// Removes what is too much beside `used` bytes in use.
    pub(crate) fn remove_excess(&mut self, disk: &Disk, used: u64) {
        self.remove(disk, self.count_excess(SystemTime::now(), used));
    }

    fn remove(&mut self, disk: &Disk, count: usize) {
        for _ in 0..count {
            if let Some(Err(error)) = self.lists.front().map(|list| list.remove(disk)) {
                // It does no harm, and the next start tries again.
                tracing::warn!(%error, source = std::error::Error::source(&error), "a folded pack was not removed");
                return;
            }
            self.lists.pop_front();
        }
    }

    /// How many of the lists, the oldest, are from before the grace time. A clock that was set back lets them stay.
    pub fn count_old(&self, now: SystemTime) -> usize {
        let is_old = |list: &&FoldList| now.duration_since(list.since).is_ok_and(|age| age >= GRACE);
        self.lists.iter().take_while(is_old).count()
    }

    /// How many of the lists, the oldest, have to go. Once it is too much, as many as may: the next time is far off
    /// then. The newest stays, however large: a `git clone` may have listed its packs a moment ago.
    pub fn count_excess(&self, now: SystemTime, used: u64) -> usize {
        let packs: usize = self.lists.iter().map(|list| list.sources.len()).sum();
        let bytes: u64 = self.lists.iter().map(|list| list.bytes).sum();
        let max_bytes = used.saturating_add(MAX_BYTES);
        if packs <= MAX_PACKS && bytes <= max_bytes {
            return 0;
        }
        let (mut packs, mut bytes) = (packs, bytes);
        let is_needed = |list: &&FoldList| {
            let is_excess = packs > MAX_PACKS / 2 || bytes > max_bytes;
            packs -= list.sources.len();
            bytes -= list.bytes;
            is_excess
        };
        let needed = self.lists.iter().take_while(is_needed).count();
        needed.min(self.lists.len().saturating_sub(1)).max(self.count_old(now))
    }
}

impl FoldList {
    /// Writes the list of `sources` that will be in the pack `into`, which does not have its name yet.
    pub(crate) fn write(disk: &Disk, into: &Path, sources: &[&Pack]) -> Result<Self, DiskError> {
        let path = into.with_extension(ENDING);
        let names = sources.iter().filter_map(|pack| pack.stem.file_name()?.to_str());
        let text: String = names.flat_map(|name| [name, "\n"]).collect();
        disk.remove(&path)?;
        disk.write_new(&path, text.as_bytes())?;
        let since = SystemTime::now();
        // What was folded twice must go in the order in which it was folded, and the file system's own clock is coarse.
        // Without it some packs would stay, to be folded once more.
        let _ = File::options().write(true).open(&path).and_then(|list| list.set_modified(since));
        Ok(Self {
            into: into.to_owned(),
            sources: sources.iter().map(|pack| pack.stem.clone()).collect(),
            bytes: sources.iter().map(|pack| pack.bytes()).sum(),
            since,
        })
    }

    fn remove(&self, disk: &Disk) -> Result<(), DiskError> {
        if let Some(dir) = self.into.parent() {
            // It may name packs that are about to go; Git does without it.
            disk.remove(&dir.join("multi-pack-index"))?;
        }
        // `git gc` by hand may have replaced the new pack, and someone may have set an old one aside.
        for source in held(&self.into, self.sources.iter().filter(|source| !is_kept(source)).cloned()) {
            // The pack goes before its index: an index alone is known to be worthless, and removed at the next start.
            for ending in ["pack", "idx", "rev", "bitmap"] {
                disk.remove(&source.with_extension(ending))?;
            }
        }
        disk.remove(&self.into.with_extension(ENDING))
    }
}

/// Whether a pack is there with its index.
pub(crate) fn is_whole(stem: &Path) -> bool {
    ["pack", "idx"].iter().all(|ending| stem.with_extension(ending).exists())
}

/// Packs that an operator or Git has set aside.
pub(crate) fn is_kept(stem: &Path) -> bool {
    ["keep", "promisor", "mtimes"].iter().any(|ending| stem.with_extension(ending).exists())
}

/// The packs of `sources` whose every object is in the pack `into` as well, as far as the indexes tell.
fn held(into: &Path, sources: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let open = |stem: &Path| index::File::at(stem.with_extension("idx"), HashKind::Sha1).ok();
    let Some(whole) = open(into).filter(|_| is_whole(into)) else { return Vec::new() };
    let is_held = |index: index::File| index.iter().all(|entry| whole.lookup(entry.oid).is_some());
    sources.filter(|source| open(source).is_some_and(is_held)).collect()
}

fn read_list(path: &Path, into: PathBuf) -> io::Result<FoldList> {
    let since = fs::metadata(path)?.modified()?;
    // After a power cut there may be anything in it: nothing is believed that the indexes do not say as well.
    let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    let names = text.lines().filter(|name| name.starts_with("pack-") && !name.contains(['/', '.', '\0']));
    let sources = names.map(|name| path.with_file_name(name)).filter(|source| *source != into);
    let sources = held(&into, sources);
    let sizes = sources.iter().filter_map(|source| fs::metadata(source.with_extension("pack")).ok());
    Ok(FoldList { bytes: sizes.map(|file| file.len()).sum(), into, sources, since })
}
