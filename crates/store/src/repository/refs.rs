//! The branch: where `main` points, and moving it so that it is on disk.

use std::{fs, io, io::Write as _, path::Path, path::PathBuf, thread, time::Duration, time::Instant};

use gix::ObjectId;

use crate::error::StoreError;
use crate::machine::disk::{Disk, DiskError, NewFile};

pub(crate) const BRANCH: &str = "refs/heads/main";
const PACKED: &str = "packed-refs";
/// How long another program, such as `git gc` run by hand, may hold the lock before a publish gives up.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The branch, for the one who moves it.
#[derive(Debug)]
pub(crate) struct Branch {
    git_dir: PathBuf,
    /// The lock file is ours, whatever is in it: a write that failed may leave a part, or nothing.
    is_locked: bool,
}

impl Branch {
    pub(crate) fn of(git_dir: &Path) -> Self {
        Self { git_dir: git_dir.to_owned(), is_locked: false }
    }

    /// The commit that it points to; `None` before the first one.
    pub(crate) fn read(&self) -> Result<Option<ObjectId>, StoreError> {
        let path = self.git_dir.join(BRANCH);
        match fs::read(&path) {
            Ok(bytes) => parse_id(bytes.trim_ascii(), &path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => read_packed(&self.git_dir.join(PACKED)),
            Err(error) => Err(DiskError::new("read", &path, error).into()),
        }
    }

    /// Moves it from `old` to `new`, and returns once that is on disk. After an error it points to either.
    pub(crate) fn move_to(
        &mut self,
        disk: &Disk,
        old: Option<ObjectId>,
        new: ObjectId,
    ) -> Result<(), StoreError> {
        let moved = self.replace(disk, old, new);
        if moved.is_err() {
            // Not vital: a lock that stays is removed when we settle, or at the next start.
            let _ = self.unlock(disk);
        }
        moved?;
        Ok(disk.sync_dir(&self.git_dir.join("refs/heads"))?)
    }

    /// Removes the lock if it is ours. Another program's is left alone.
    pub(crate) fn unlock(&mut self, disk: &Disk) -> Result<(), DiskError> {
        if self.is_locked {
            disk.remove(&lock_of(&self.git_dir.join(BRANCH)))?;
            self.is_locked = false;
        }
        Ok(())
    }

    fn replace(&mut self, disk: &Disk, old: Option<ObjectId>, new: ObjectId) -> Result<(), StoreError> {
        let branch = self.git_dir.join(BRANCH);
        let lock = lock_of(&branch);
        let mut file = create_lock(disk, &lock)?;
        self.is_locked = true;
        let written = file.write_all(format!("{new}\n").as_bytes());
        written.map_err(|source| DiskError::new("write", &lock, source))?;
        file.sync()?;
        // If another program moved the branch, going on would lose its commits.
        if self.read()? != old {
            return Err(StoreError::corrupt(BRANCH, "another program moved it"));
        }
        disk.rename(&lock, &branch)?;
        self.is_locked = false;
        Ok(())
    }
}

/// Locks that a kill left behind. Only under our own process lock, so that no other server is at work here.
pub(crate) fn remove_stale_locks(disk: &Disk, git_dir: &Path) -> Result<(), DiskError> {
    for name in [BRANCH, "HEAD", PACKED] {
        disk.remove(&lock_of(&git_dir.join(name)))?;
    }
    Ok(())
}

fn lock_of(path: &Path) -> PathBuf {
    path.with_extension("lock")
}

fn create_lock<'a>(disk: &'a Disk, lock: &'a Path) -> Result<NewFile<'a>, DiskError> {
    let begin = Instant::now();
    loop {
        match disk.create_new(lock) {
            Err(error)
                if error.source.kind() == io::ErrorKind::AlreadyExists && begin.elapsed() < LOCK_TIMEOUT =>
            {
                thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

fn read_packed(path: &Path) -> Result<Option<ObjectId>, StoreError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DiskError::new("read", path, error).into()),
    };
    let line = text.lines().find_map(|line| line.strip_suffix(BRANCH)?.strip_suffix(' '));
    line.map(|id| parse_id(id.as_bytes(), path)).transpose()
}

fn parse_id(hex: &[u8], path: &Path) -> Result<ObjectId, StoreError> {
    ObjectId::from_hex(hex).map_err(|_| StoreError::corrupt(path.display(), "it does not name a commit"))
}
