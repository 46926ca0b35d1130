//! Every step by which the store, the nonces and the log change the disk. Durability is an order of these steps, so
//! they stand in one place, where a test can make each of them fail and `countersign-simulator` can lose what is not
//! durable.

use std::fs::{File, OpenOptions};
use std::{fmt, fs, io, io::Write, os::unix::fs::FileExt as _, path::Path, path::PathBuf, sync::Arc};

use thiserror::Error;

/// Ends the names of files that are not complete yet. Not `tmp_…`, which `git prune` removes under our hands, and
/// neither `.pack` nor `.idx`, which Git would read.
pub(crate) const UNFINISHED: &str = "countersign-tmp";

/// The name of a file of a pack until it is whole.
pub(crate) fn unfinished(stem: &Path, ending: &str) -> PathBuf {
    stem.with_extension(format!("{ending}.{UNFINISHED}"))
}

/// The disk as the store uses it.
#[derive(Clone, Default)]
pub struct Disk {
    fault: Option<DiskFault>,
}

/// A function that is called around each step; an error stands for the step's own failure.
pub type DiskFault = Arc<dyn Fn(DiskStep, Moment, &Path) -> io::Result<()> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskStep {
    CreateDir,
    Create,
    /// Adds to the end of a file.
    Write,
    /// Writes somewhere into a file.
    WriteAt,
    SetLength,
    Sync,
    Rename,
    SyncDir,
    Remove,
    /// A transaction of SQLite, which writes and syncs its files itself.
    Commit,
}

/// An error `Before` a step is a step that did not happen; one `After` it, a step that happened and was reported lost.
/// One `Midway`, which only a write knows, leaves half of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Before,
    Midway,
    After,
}

/// A file that is being written. [`NewFile::sync`] makes its content durable, [`Disk::sync_dir`] its name.
#[derive(Debug)]
pub(crate) struct NewFile<'a> {
    disk: &'a Disk,
    path: &'a Path,
    file: File,
}

/// A file that is changed in place, and read by others meanwhile.
#[derive(Debug)]
pub struct ChangedFile {
    disk: Disk,
    path: PathBuf,
    file: Arc<File>,
}

#[derive(Debug, Clone, Error)]
#[error("cannot {action} {}", path.display())]
pub struct DiskError {
    action: &'static str,
    pub path: PathBuf,
    pub source: Arc<io::Error>,
}

impl DiskError {
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self { action, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Whether there is no room: on the disk, in a quota, or below a limit of the process.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self.source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }
}

/// The error of the operating system, for one who knows the path.
impl From<DiskError> for io::Error {
    fn from(error: DiskError) -> Self {
        Arc::try_unwrap(error.source).unwrap_or_else(|shared| Self::new(shared.kind(), shared))
    }
}

impl Disk {
    /// A disk that fails where `fault` says so.
    pub fn with_fault(fault: DiskFault) -> Self {
        Self { fault: Some(fault) }
    }

    /// Writes a file that must not exist yet, and returns once its content is on disk. The name is durable only after
    /// [`Disk::sync_dir`]. A failure leaves nothing behind, unless removing fails as well.
    pub(crate) fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let mut file = self.create_new(path)?;
        let written = file.write_all(bytes).map_err(|source| DiskError::new("write", path, source));
        let written = written.and_then(|()| file.sync());
        if written.is_err() {
            let _ = self.remove(path);
        }
        written
    }

    /// A new file for content that comes in pieces.
    pub(crate) fn create_new<'a>(&'a self, path: &'a Path) -> Result<NewFile<'a>, DiskError> {
        // Not a step like the others: a file handle is given or it is not, so nothing can happen and be reported lost.
        let file = self
            .check(DiskStep::Create, Moment::Before, path)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).open(path))
            .map_err(|source| DiskError::new(DiskStep::Create.verb(), path, source))?;
        Ok(NewFile { disk: self, path, file })
    }

    /// Makes a directory, and those above it; one that is there is fine.
    pub(crate) fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.step(DiskStep::CreateDir, path, || fs::create_dir_all(path))
    }

    /// A file that is there, or a new one.
    pub fn open_changed(&self, path: &Path) -> io::Result<ChangedFile> {
        self.check(DiskStep::Create, Moment::Before, path)?;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(ChangedFile { disk: self.clone(), path: path.to_owned(), file: Arc::new(file) })
    }

    /// Runs the commit of a transaction.
    pub(crate) fn commit<E: From<io::Error>>(
        &self,
        database: &Path,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.check(DiskStep::Commit, Moment::Before, database)?;
        commit()?;
        Ok(self.check(DiskStep::Commit, Moment::After, database)?)
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.step(DiskStep::Rename, to, || fs::rename(from, to))
    }

    /// Makes names that came and went in `dir` durable.
    pub(crate) fn sync_dir(&self, dir: &Path) -> Result<(), DiskError> {
        self.step(DiskStep::SyncDir, dir, || File::open(dir)?.sync_all())
    }

    /// Makes names that came and went durable in the directory in which `path` lies.
    pub(crate) fn sync_parent(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        self.try_step(DiskStep::SyncDir, parent, || File::open(parent)?.sync_all())
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.step(DiskStep::Remove, path, || ignore_missing(fs::remove_file(path)))
    }

    /// Removes a directory with everything in it; one that is not there is fine.
    pub(crate) fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.step(DiskStep::Remove, path, || ignore_missing(fs::remove_dir_all(path)))
    }

    fn step(
        &self,
        step: DiskStep,
        path: &Path,
        act: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), DiskError> {
        self.try_step(step, path, act).map_err(|source| DiskError::new(step.verb(), path, source))
    }

    fn try_step(&self, step: DiskStep, path: &Path, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.check(step, Moment::Before, path)?;
        act()?;
        self.check(step, Moment::After, path)
    }

    /// Writes the bytes; in two halves only if a test asks for it.
    fn write_halves(
        &self,
        path: &Path,
        bytes: &[u8],
        mut write: impl FnMut(&[u8], usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let half = if self.fault.is_some() { bytes.len() / 2 } else { bytes.len() };
        write(&bytes[..half], 0)?;
        self.check(DiskStep::Write, Moment::Midway, path)?;
        write(&bytes[half..], half)
    }

    fn check(&self, step: DiskStep, moment: Moment, path: &Path) -> io::Result<()> {
        self.fault.as_ref().map_or(Ok(()), |fault| fault(step, moment, path))
    }
}

impl NewFile<'_> {
    pub(crate) fn sync(&self) -> Result<(), DiskError> {
        self.disk.step(DiskStep::Sync, self.path, || self.file.sync_all())
    }
}

impl ChangedFile {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, to read from.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.try_step(DiskStep::WriteAt, &self.path, || {
            self.disk
                .write_halves(&self.path, bytes, |half, at| self.file.write_all_at(half, offset + at as u64))
        })
    }

    /// A file that is as long is not touched.
    pub fn set_length(&self, length: u64) -> io::Result<()> {
        if self.file.metadata()?.len() == length {
            return Ok(());
        }
        self.disk.try_step(DiskStep::SetLength, &self.path, || self.file.set_len(length))
    }

    pub fn sync(&self) -> io::Result<()> {
        self.disk.try_step(DiskStep::Sync, &self.path, || self.file.sync_data())
    }

    /// Gives the file the place of another one, durably. After a failure this can be called again.
    pub fn take_place(&mut self, path: &Path) -> io::Result<()> {
        if self.path == path {
            return Ok(());
        }
        // It was renamed before a failure that came after that.
        ignore_missing(self.disk.rename(&self.path, path).map_err(io::Error::from))?;
        self.disk.sync_parent(path)?;
        path.clone_into(&mut self.path);
        Ok(())
    }
}

impl Write for NewFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self { disk, path, file } = self;
        disk.try_step(DiskStep::Write, path, || {
            disk.write_halves(path, bytes, |half, _| file.write_all(half))
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lists what lies in a directory.
pub(crate) fn list_dir(dir: &Path) -> Result<Vec<PathBuf>, DiskError> {
    let entries = fs::read_dir(dir).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.map_err(|source| DiskError::new("list", dir, source))
}

/// Makes the name of a file or directory durable that may have just been made.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    Disk::default().sync_parent(path)
}

pub(crate) fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl DiskStep {
    fn verb(self) -> &'static str {
        match self {
            DiskStep::CreateDir | DiskStep::Create => "create",
            DiskStep::Write | DiskStep::WriteAt => "write",
            DiskStep::SetLength => "cut",
            DiskStep::Sync | DiskStep::SyncDir => "sync",
            DiskStep::Rename => "rename to",
            DiskStep::Remove => "remove",
            DiskStep::Commit => "commit to",
        }
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk").field("fault", &self.fault.is_some()).finish()
    }
}

// Small files beside the repository, each replaced or removed as a whole.

/// Replaces the content of a file. A power cut leaves the old content or the new one.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    Disk::default().replace(path, text)
}

impl Disk {
    /// Replaces a file as [`replace`] does.
    pub fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        // A crash may have left one.
        self.remove(&unfinished)?;
        let mut file = self.create_new(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync()?;
        self.rename(&unfinished, path)?;
        self.sync_parent(path)
    }

    /// A directory whose names, and whose own name, do not go back after a power cut. It is made where it is missing.
    pub fn settle_dir(&self, dir: &Path) -> io::Result<()> {
        self.create_dir(dir)?;
        self.sync_parent(dir)?;
        Ok(self.sync_dir(dir)?)
    }
}

/// Removes a file, and returns whether it was there. When this returns, it does not come back.
pub fn remove(path: &Path) -> io::Result<bool> {
    let disk = Disk::default();
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    disk.remove(path)?;
    disk.sync_parent(path).map(|()| true)
}

/// Reads a file of at most `max_bytes`; `None` if it is not there.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(found) if found.len() > max_bytes => Err(io::Error::other("it is too large")),
        Ok(_) => fs::read(path).map(Some),
    }
}

/// Reads a text file of at most `max_bytes`; `None` if it is not there.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<Option<String>> {
    let text =
        |bytes| String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
    read(path, max_bytes)?.map(text).transpose()
}
