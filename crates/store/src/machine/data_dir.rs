//! The data directory, and the lock that makes one process its only user.

use std::{fs::File, fs::OpenOptions, fs::TryLockError, io, path::Path, path::PathBuf, sync::Arc};
use std::{thread::sleep, time::Duration, time::Instant};

use rustix::fs::{Access, access};
use thiserror::Error;

use crate::machine::disk::sync_parent;

const LOCK_FILE: &str = "lock";
/// More than a look at the directory takes, which holds the lock for an instant.
const LOOK: Duration = Duration::from_millis(200);
pub(crate) const REPOSITORY_DIR: &str = "repo.git";

/// Everything that we keep on disk lies in here. The directory is ours until this value is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// The operating system lets go of the lock with the process, however it ends.
    lock: File,
}

/// Unlocks the file. To close it is not enough: a program that another thread is just starting has it open, too.
impl Drop for DataDir {
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

#[derive(Debug, Clone, Error)]
pub enum DataDirError {
    #[error("the data directory {} is in use by another process", path.display())]
    InUse { path: PathBuf },
    #[error("{} is not a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("the data directory {} is not writable", path.display())]
    NotWritable { path: PathBuf, source: Arc<io::Error> },
    #[error("the data directory {} cannot be used", path.display())]
    Unusable { path: PathBuf, source: Arc<io::Error> },
}

impl DataDir {
    /// Creates the directory where it is missing, and takes it for this process.
    pub fn lock(path: &Path) -> Result<Self, DataDirError> {
        let fail = |source| explain(path, source);
        std::fs::create_dir_all(path).map_err(fail)?;
        // A new directory's name must be as durable as what will lie in it.
        sync_parent(path).map_err(fail)?;
        // The lock file stays when we leave: removing it would let two processes lock two different files.
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).read(true).write(true);
        let lock = options.open(path.join(LOCK_FILE)).map_err(fail)?;
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path: path.to_owned(), lock }),
                Err(TryLockError::Error(source)) => return Err(fail(source)),
                Err(TryLockError::WouldBlock) if begun.elapsed() < LOOK => sleep(LOOK / 20),
                Err(TryLockError::WouldBlock) => return Err(DataDirError::InUse { path: path.to_owned() }),
            }
        }
    }

    /// Whether another process holds the directory. If not, [`DataDir::lock`] would succeed. Leaves nothing behind.
    pub fn is_held(path: &Path) -> Result<bool, DataDirError> {
        let fail = |source| explain(path, source);
        // What is missing is made below the nearest directory that is there.
        let there = path.ancestors().map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
        let there = there.into_iter().find(|dir| dir.exists()).unwrap_or(Path::new("."));
        if !there.is_dir() {
            return Err(DataDirError::NotADirectory { path: there.to_owned() });
        }
        access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| fail(error.into()))?;
        // A lock is taken on a file that is open for reading, too. A shared one, so that two looks do not see each other.
        if let Ok(lock) = File::open(path.join(LOCK_FILE)) {
            match lock.try_lock_shared() {
                Ok(()) => lock.unlock().map_err(fail)?,
                Err(TryLockError::WouldBlock) => return Ok(true),
                Err(TryLockError::Error(source)) => return Err(fail(source)),
            }
        }
        // Root has every right, and still some file systems let no one make anything.
        let trial = there.join(format!(".countersign-check-{}", std::process::id()));
        std::fs::create_dir(&trial).and_then(|()| std::fs::remove_dir(&trial)).map_err(fail)?;
        Ok(false)
    }

    /// Whether a server has kept its state in this directory.
    pub fn has_repository_at(path: &Path) -> bool {
        Self::repository_at(path).is_dir()
    }

    pub fn repository_at(path: &Path) -> PathBuf {
        path.join(REPOSITORY_DIR)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn repository(&self) -> PathBuf {
        Self::repository_at(&self.path)
    }

    /// The path of the socket at which a running server of this directory answers its operator.
    pub fn admin_socket_at(path: &Path) -> PathBuf {
        path.join("admin.sock")
    }

    /// The name of this node among others.
    pub fn node_name(&self) -> PathBuf {
        self.path.join("node")
    }

    /// The file of what the operator has blocked.
    pub fn blocks(&self) -> PathBuf {
        self.path.join("blocks")
    }

    pub fn nonces(&self) -> PathBuf {
        self.path.join("nonces.sqlite")
    }

    /// The address of the server that a mirror follows; there in the directory of a mirror only.
    pub fn mirror_origin_at(path: &Path) -> PathBuf {
        path.join("mirror.origin")
    }

    /// Why a mirror has stopped following for ever; there only if it has.
    pub fn mirror_refused_at(path: &Path) -> PathBuf {
        path.join("mirror.refused")
    }

    /// The directory of a witness's records.
    pub fn witness(&self) -> PathBuf {
        Self::witness_at(&self.path)
    }

    pub fn witness_at(path: &Path) -> PathBuf {
        path.join("witness")
    }

    /// The checkpoints of the log of all commits, and its caches.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// A mirror's copy of its origin's log. All of it can be deleted.
    pub fn log_copy(&self) -> PathBuf {
        self.path.join("log-copy")
    }

    /// The directory in which each webhook keeps how far it came.
    pub fn webhooks(&self) -> PathBuf {
        self.path.join("webhooks")
    }
}

fn explain(path: &Path, source: io::Error) -> DataDirError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            DataDirError::NotWritable { path, source: Arc::new(source) }
        }
        io::ErrorKind::NotADirectory => DataDirError::NotADirectory { path },
        // What `create_dir_all` answers where a file has this name.
        io::ErrorKind::AlreadyExists if path.is_file() => DataDirError::NotADirectory { path },
        _ => DataDirError::Unusable { path, source: Arc::new(source) },
    }
}
