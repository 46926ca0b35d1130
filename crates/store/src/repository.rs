//! The bare repository on disk: opening it, and publishing a batch of commits so that it survives a crash at any line.

pub(crate) mod batch;
pub(crate) mod refs;
mod unpublished;

use std::{fs, mem, path::Path, path::PathBuf, sync::Arc, time::Duration, time::Instant};

use countersign_core::{documents::layout::RepositoryMarker, values::wire};
use gix::{ObjectId, config::file::SectionRef, hash::Kind as HashKind};
use thiserror::Error;

use crate::machine::clock::Clock;
use crate::machine::disk::{Disk, DiskError, UNFINISHED, list_dir, unfinished};
use crate::objects::{Objects, folded, folded::Folded, pack, pack::Pack};
use crate::repository::refs::{BRANCH, Branch, remove_stale_locks};
use crate::repository::{batch::Batch, unpublished::LeftMark, unpublished::UnpublishedPack};
use crate::{error::StoreError, snapshot::tree::Dir, snapshot::tree::load::load_tree};

const CACHE_BYTES: u64 = 64 << 20;
/// A node holds in memory what its database keeps safe already, up to so many bytes, and for so long after it wrote to
/// disk the last time.
const HELD_FOR: Duration = Duration::from_secs(1);
const HELD_BYTES: usize = 16 << 20;
/// The name of a repository while it is being made, like `UNFINISHED`.
const UNBORN_DIR: &str = "repo.git.countersign-tmp";

/// A repository that no other program writes to: the caller holds the data directory's lock.
#[derive(Debug)]
pub struct Repository {
    dir: PathBuf,
    pub(crate) disk: Disk,
    pub(crate) objects: Arc<Objects>,
    branch: Branch,
    /// The newest commit that is published.
    pub(crate) tip: Option<ObjectId>,
    pub(crate) root: Arc<Dir>,
    /// The commit at which we left the branch: behind `tip` for as long as something is held.
    on_branch: Option<ObjectId>,
    held: Batch,
    /// The time at which something came to disk last.
    written: Instant,
    clock: Clock,
    /// A publish that failed: the branch may point to either end of it.
    unsettled: Option<UnpublishedPack>,
}

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("{} is not a repository of Countersign: {reason}", path.display())]
    NotOurs { path: PathBuf, reason: String },
    #[error("{} cannot be read as a Git repository: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        Self::Store(error.into())
    }
}

impl Repository {
    /// Opens the repository at `dir`, or makes one where there is nothing.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_on(Disk::default(), dir)
    }

    /// Opens the repository as [`Repository::open`] does, on a disk that a test can make fail.
    pub fn open_on(disk: Disk, dir: &Path) -> Result<Self, OpenError> {
        if !dir.exists() {
            create(&disk, dir)?;
        }
        check_layout(dir)?;
        let pack_dir = dir.join("objects/pack");
        for needed in [&pack_dir, &dir.join("refs/heads")] {
            // A clone may lack them. Their names must be as durable as what will lie in them.
            disk.create_dir(needed)?;
            disk.sync_dir(needed.parent().expect("they lie in the repository"))?;
        }
        remove_stale_locks(&disk, dir)?;
        let remotes = configure(&disk, dir)?;
        remove_unpublished(&disk, dir, &pack_dir)?;
        remove_leftovers(&disk, &pack_dir)?;
        // A kill may have come between a rename and this fsync; from here on, what is visible is durable. Only then may
        // packs go whose objects are in another one.
        disk.sync_dir(&pack_dir)?;
        disk.sync_dir(&dir.join("refs/heads"))?;
        Folded::load(&pack_dir)?.remove_old(&disk);
        if !remotes.is_empty() {
            let names = remotes.join(", ");
            tracing::info!(
                remotes = names,
                "the repository was a clone: its remotes were removed, because it is no longer a copy"
            );
        }
        Self::read(disk, dir)
    }

    /// What [`Repository::open`] would open, without changing anything. `None`: there is nothing yet.
    pub fn inspect(dir: &Path) -> Result<Option<Self>, OpenError> {
        if !dir.exists() {
            return Ok(None);
        }
        check_layout(dir)?;
        Self::read(Disk::default(), dir).map(Some)
    }

    fn read(disk: Disk, dir: &Path) -> Result<Self, OpenError> {
        let objects = Arc::new(Objects::open(&[dir.join("objects")], CACHE_BYTES, false)?);
        let branch = Branch::of(dir);
        let tip = branch.read()?;
        let (dir, root) = (dir.to_owned(), Dir::empty());
        let mut repository = Self {
            dir,
            disk,
            objects,
            branch,
            tip,
            root,
            on_branch: tip,
            held: Batch::default(),
            written: Instant::now(),
            clock: Clock::system(),
            unsettled: None,
        };
        if let Some(tip) = tip {
            repository.root = repository.load(tip)?;
            repository.check_ours()?;
        }
        Ok(repository)
    }

    /// Sets the clock that measures how long something was held.
    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.written = clock.steady();
        self.clock = clock;
    }

    /// The newest commit.
    pub fn tip(&self) -> Option<ObjectId> {
        self.tip
    }

    /// Whether there is no commit yet.
    pub fn is_unborn(&self) -> bool {
        self.tip.is_none()
    }

    /// The bytes of the format marker (D38); `None` before the first commit.
    pub fn marker(&self) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.root.file(&RepositoryMarker::path()).map(|id| self.objects.blob(&id)).transpose()
    }

    pub(crate) fn pack_dir(&self) -> PathBuf {
        self.dir.join("objects/pack")
    }

    /// Puts the commits of `batch`, the last of which is `tip`, on the branch. After `Ok` they are on disk; after an
    /// error nothing is known until [`Repository::settle`].
    pub(crate) fn publish(&mut self, batch: &Batch, tip: ObjectId) -> Result<(), StoreError> {
        self.write(batch, tip)?;
        self.tip = Some(tip);
        Ok(())
    }

    /// Publishes the commits of `batch` without writing them, because they are durable elsewhere. They are written to
    /// disk later, many batches at once.
    pub(crate) fn hold(&mut self, batch: Batch, tip: ObjectId) {
        self.objects.hold(&batch.objects);
        self.held.absorb(batch);
        self.tip = Some(tip);
    }

    /// The time at which what is held is to be written; `None` if there is nothing.
    pub(crate) fn write_held_at(&self) -> Option<Instant> {
        let is_urgent = self.on_branch.is_none() || self.held.bytes > HELD_BYTES;
        let is_held = !self.held.objects.is_empty();
        is_held.then(|| if is_urgent { self.written } else { self.written + HELD_FOR })
    }

    /// Puts what is held on the branch. After an error it is still held; as after a failed publish,
    /// [`Repository::settle`] comes first.
    pub(crate) fn write_held(&mut self) -> Result<(), StoreError> {
        let Some(tip) = self.tip.filter(|_| !self.held.objects.is_empty()) else { return Ok(()) };
        let held = mem::take(&mut self.held);
        let written = self.write(&held, tip);
        if written.is_err() {
            self.held = held;
        }
        written
    }

    fn write(&mut self, batch: &Batch, tip: ObjectId) -> Result<(), StoreError> {
        let encoded = pack::encode(&batch.objects);
        let stem = self.pack_dir().join(format!("pack-{}", encoded.id));
        let unpublished = UnpublishedPack { stem: stem.clone(), from: self.on_branch, to: tip };
        self.unsettled = Some(unpublished.clone());
        unpublished.mark(&self.disk)?;
        self.disk.write_new(&unfinished(&stem, "pack"), &encoded.pack)?;
        self.disk.write_new(&unfinished(&stem, "idx"), &encoded.index)?;
        finish_pack(&self.disk, &stem)?;
        let pack = Pack::open(stem)?;
        // A crash from here on leaves a pack that nothing refers to. The next start removes it.
        self.branch.move_to(&self.disk, self.on_branch, tip)?;
        unpublished.unmark(&self.disk)?;
        self.unsettled = None;
        self.on_branch = Some(tip);
        self.written = self.clock.steady();
        self.objects.add_pack(pack);
        Ok(())
    }

    /// Settles a failed publish: finds out where the branch is, makes that durable, and removes what came to nothing.
    /// Returns whether what is published stays as it was.
    pub(crate) fn settle(&mut self) -> Result<bool, StoreError> {
        let Some(unpublished) = self.unsettled.clone() else { return Ok(true) };
        let tip = unpublished.to;
        self.objects.unstage();
        self.branch.unlock(&self.disk)?;
        let now = self.branch.read()?;
        if now == Some(tip) {
            // Moved, and reported lost. The fsync that failed proves nothing when repeated, so the file is made anew.
            self.branch.move_to(&self.disk, now, tip)?;
            unpublished.unmark(&self.disk)?;
        } else {
            unpublished.remove(&self.disk)?;
        }
        self.objects.rescan()?;
        let (is_unmoved, is_published) = (now == self.on_branch, now == self.tip);
        // A node may have published more since the write that failed. It holds that, and does not go back (D154).
        let is_ahead = Some(tip) == now && !is_published && !self.held.objects.is_empty();
        if !is_unmoved && !is_published && !is_ahead {
            let moved = now.ok_or_else(|| StoreError::corrupt(BRANCH, "it is gone"))?;
            self.root = self.load(moved)?;
            self.tip = now;
        }
        if !is_unmoved && !is_ahead {
            self.held = Batch::default();
            self.objects.release();
        }
        self.on_branch = now;
        self.unsettled = None;
        Ok(is_unmoved || is_published || is_ahead)
    }

    fn load(&self, commit: ObjectId) -> Result<Arc<Dir>, StoreError> {
        load_tree(&self.objects, self.objects.commit(commit)?.tree)
    }

    fn check_ours(&self) -> Result<(), OpenError> {
        if self.root.file(&RepositoryMarker::path()).is_some() {
            return Ok(());
        }
        let reason = format!("there is no file {} at the root of {BRANCH}", wire::REPOSITORY_FILE);
        Err(OpenError::NotOurs { path: self.dir.clone(), reason })
    }
}

/// Gives a pack and its index, which are on disk under unfinished names, their final ones. The index comes last: Git
/// and we look for indexes, so a crash between the two leaves a pack that no reader sees.
pub(crate) fn finish_pack(disk: &Disk, stem: &Path) -> Result<(), DiskError> {
    for ending in ["pack", "idx"] {
        disk.rename(&unfinished(stem, ending), &stem.with_extension(ending))?;
    }
    disk.sync_dir(stem.parent().expect("a pack lies in a directory"))
}

/// A clone is given what lies here: versions of directories are differences already, and looking for more
/// would take as long as all the rest of a clone.
const CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
[pack]
\twindow = 0
";

/// An empty bare repository, made beside its place and then moved there: a crash leaves none or a whole one. Written
/// out rather than left to gix, which takes the branch's name from the user's configuration and does not fsync.
fn create(disk: &Disk, dir: &Path) -> Result<(), DiskError> {
    let parent = dir.parent().unwrap_or(Path::new("."));
    let new = parent.join(UNBORN_DIR);
    disk.remove_dir(&new)?;
    let dirs = ["objects/info", "objects/pack", "objects", "refs/heads", "refs/tags", "refs", ""];
    for name in dirs {
        disk.create_dir(&new.join(name))?;
    }
    disk.write_new(&new.join("HEAD"), format!("ref: {BRANCH}\n").as_bytes())?;
    disk.write_new(&new.join("config"), format!("{CONFIG}{}", unpublished::CONFIG_LINES).as_bytes())?;
    for name in dirs {
        disk.sync_dir(&new.join(name))?;
    }
    disk.rename(&new, dir)?;
    disk.sync_dir(parent)
}

/// Adds to the configuration what marks need, where it is missing: in a clone, or in a repository of an earlier
/// version. Removes the remotes, and returns their names: a repository that was restored from a clone still has the
/// clone as its remote, and a `git remote update` would put the old state in the place of the new one (D58).
fn configure(disk: &Disk, dir: &Path) -> Result<Vec<String>, DiskError> {
    let path = dir.join("config");
    let text = fs::read_to_string(&path).map_err(|source| DiskError::new("read", &path, source))?;
    let (mut kept, remotes) = without_remotes(&text);
    if !kept.contains(unpublished::CONFIG_LINES) {
        let line_break = if kept.ends_with('\n') { "" } else { "\n" };
        kept = format!("{kept}{line_break}{}", unpublished::CONFIG_LINES);
    }
    if kept != text {
        let replaced = disk.replace(&path, &kept);
        replaced.map_err(|source| DiskError::new("write", &path, source))?;
    }
    Ok(remotes)
}

fn without_remotes(text: &str) -> (String, Vec<String>) {
    // The repository was opened, so its configuration can be read.
    let Ok(config) = gix::config::File::try_from(text) else { return (text.to_owned(), Vec::new()) };
    let is_remote = |section: &SectionRef<'_>| section.header().name().eq_ignore_ascii_case(b"remote");
    let remotes = config.sections().filter(is_remote);
    let names: Vec<_> = remotes
        .map(|remote| remote.header().subsection_name().map(ToString::to_string).unwrap_or_default())
        .collect();
    if names.is_empty() {
        return (text.to_owned(), names);
    }
    let mut kept = Vec::new();
    let written = config.write_to_filter(&mut kept, |section| !is_remote(section));
    written.expect("writing to memory does not fail");
    (String::from_utf8_lossy(&kept).into_owned(), names)
}

/// Refuses repositories of a kind that we cannot read in full, rather than reading them in part.
fn check_layout(dir: &Path) -> Result<(), OpenError> {
    let unreadable = |reason: String| OpenError::Unreadable { path: dir.to_owned(), reason };
    let not_ours = |reason: String| OpenError::NotOurs { path: dir.to_owned(), reason };
    let options = gix::open::Options::isolated().open_path_as_is(true);
    let opened = gix::open_opts(dir, options).map_err(|error| unreadable(error.to_string()))?;
    if !opened.is_bare() || opened.object_hash() != HashKind::Sha1 {
        return Err(not_ours("it is not a bare repository with SHA-1 ids".to_owned()));
    }
    let head = opened.head().map_err(|error| unreadable(error.to_string()))?;
    match head.referent_name().map(|name| name.as_bstr()) {
        Some(name) if name == BRANCH => {}
        Some(name) => return Err(not_ours(format!("HEAD is {name}, not {BRANCH}"))),
        None => return Err(not_ours(format!("HEAD is not on {BRANCH}"))),
    }
    if head.is_unborn() {
        let refs = opened.references().map_err(|error| unreadable(error.to_string()))?;
        let mut refs = refs.all().map_err(|error| unreadable(error.to_string()))?;
        if refs.next().is_some() {
            return Err(not_ours(format!("it has branches or tags, but no {BRANCH}")));
        }
    }
    if fs::read(dir.join("objects/info/alternates")).is_ok_and(|list| !list.trim_ascii().is_empty()) {
        let reason = "it borrows objects from another one (objects/info/alternates); run `git repack -a -d` in it, \
                      and remove that file";
        return Err(unreadable(reason.to_owned()));
    }
    Ok(())
}

/// Removes the pack of a publish that a crash ended before the branch moved (D200). Where the branch is neither at its
/// beginning nor at its end, the mark is an old one, as in a copy that was made of a running server: then the pack
/// stays.
fn remove_unpublished(disk: &Disk, dir: &Path, pack_dir: &Path) -> Result<(), OpenError> {
    for mark in LeftMark::find_all(pack_dir)? {
        match mark {
            LeftMark::Whole(pack) if Branch::of(dir).read()? == pack.from => pack.remove(disk)?,
            LeftMark::Whole(pack) => pack.unmark(disk)?,
            LeftMark::Torn(mark) => disk.remove(&mark)?,
        }
    }
    Ok(())
}

/// Removes what a crash left in the directory of packs. A pack without an index is removed only where our unfinished
/// index shows that it is ours: any other one may be someone's only copy.
fn remove_leftovers(disk: &Disk, dir: &Path) -> Result<(), DiskError> {
    for path in list_dir(dir)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if let Some(stem) = name.strip_suffix(&format!(".idx.{UNFINISHED}")).map(|stem| dir.join(stem))
            && !stem.with_extension("idx").exists()
        {
            disk.remove(&stem.with_extension("pack"))?;
        }
        let lost_pack = name.ends_with(".idx") && !path.with_extension("pack").exists();
        let lost_list = path.extension().is_some_and(|ending| ending == folded::ENDING)
            && !folded::is_whole(&path.with_extension(""));
        if name.ends_with(UNFINISHED) || lost_pack || lost_list {
            disk.remove(&path)?;
        }
    }
    Ok(())
}
