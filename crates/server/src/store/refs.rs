//! The branch: where `main` points, and moving it so that it is on disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use gix::ObjectId;

use super::{
    StoreError,
    disk::{Disk, DiskError},
};

pub(super) const BRANCH: &str = "refs/heads/main";
const PACKED: &str = "packed-refs";
/// How long another program, such as `git gc` run by hand, may hold the lock before a publish gives up.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The commit that the branch points to; `None` before the first one.
pub(super) fn read_branch(git_dir: &Path) -> Result<Option<ObjectId>, StoreError> {
    let path = git_dir.join(BRANCH);
    match fs::read(&path) {
        Ok(bytes) => parse_id(bytes.trim_ascii()).map(Some).ok_or_else(|| unreadable(&path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => read_packed(&git_dir.join(PACKED)),
        Err(error) => Err(DiskError::new("read", &path, error).into()),
    }
}

/// Moves the branch from `old` to `new`, and returns once that is on disk. After an error it points to either.
pub(super) fn move_branch(
    disk: &Disk,
    git_dir: &Path,
    old: Option<ObjectId>,
    new: ObjectId,
) -> Result<(), StoreError> {
    let branch = git_dir.join(BRANCH);
    let lock = lock_of(&branch);
    write_lock(disk, &lock, format!("{new}\n").as_bytes())?;
    let moved = check_unmoved(git_dir, old).and_then(|()| Ok(disk.rename(&lock, &branch)?));
    if moved.is_err() {
        // Removing it is not vital: a lock that stays is removed when we settle, or at the next start.
        let _ = disk.remove(&lock);
    }
    moved?;
    Ok(disk.sync_dir(&git_dir.join("refs/heads"))?)
}

/// Locks that a kill left behind. Only under our own process lock: nobody else is at work here then.
pub(super) fn remove_stale_locks(disk: &Disk, git_dir: &Path) -> Result<(), DiskError> {
    for name in [BRANCH, "HEAD", PACKED] {
        disk.remove(&lock_of(&git_dir.join(name)))?;
    }
    Ok(())
}

pub(super) fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn write_lock(disk: &Disk, lock: &Path, content: &[u8]) -> Result<(), DiskError> {
    let begin = Instant::now();
    loop {
        match disk.write_new(lock, content) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && begin.elapsed() < LOCK_PATIENCE => {
                thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

/// Nobody may have moved the branch behind our back: their commits would be lost.
fn check_unmoved(git_dir: &Path, expected: Option<ObjectId>) -> Result<(), StoreError> {
    if read_branch(git_dir)? == expected {
        return Ok(());
    }
    Err(StoreError::corrupt(BRANCH, "another program moved it"))
}

fn read_packed(path: &Path) -> Result<Option<ObjectId>, StoreError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DiskError::new("read", path, error).into()),
    };
    let line = text.lines().find_map(|line| line.strip_suffix(BRANCH)?.strip_suffix(' '));
    line.map(|id| parse_id(id.as_bytes()).ok_or_else(|| unreadable(path))).transpose()
}

fn parse_id(hex: &[u8]) -> Option<ObjectId> {
    ObjectId::from_hex(hex).ok()
}

fn unreadable(path: &Path) -> StoreError {
    StoreError::corrupt(path.display(), "it does not name a commit")
}
