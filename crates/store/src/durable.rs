//! Small files beside the repository, each replaced or removed as a whole.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::disk::{Disk, DiskError};

/// What has just been done while a file is replaced. A crash can come after each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaceStep {
    Written,
    Synced,
    Renamed,
    DirSynced,
}

/// Replaces the content of a file. A power cut leaves the old content or the new one.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    Disk::default().replace(path, text, |_| {})
}

impl Disk {
    /// Replaces a file as [`replace`] does, and calls `note` after each step.
    pub fn replace(&self, path: &Path, text: &str, note: impl Fn(ReplaceStep)) -> io::Result<()> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        // A crash may have left one.
        self.remove(&unfinished).map_err(DiskError::into_io)?;
        let mut file = self.create_new(&unfinished).map_err(DiskError::into_io)?;
        file.write_all(text.as_bytes())?;
        note(ReplaceStep::Written);
        file.sync().map_err(DiskError::into_io)?;
        note(ReplaceStep::Synced);
        self.rename(&unfinished, path).map_err(DiskError::into_io)?;
        note(ReplaceStep::Renamed);
        self.sync_parent(path)?;
        note(ReplaceStep::DirSynced);
        Ok(())
    }

    /// A directory whose names, and whose own name, do not go back after a power cut. It is made where it is missing.
    pub fn settle_dir(&self, dir: &Path) -> io::Result<()> {
        self.create_dir(dir).map_err(DiskError::into_io)?;
        self.sync_parent(dir)?;
        self.sync_dir(dir).map_err(DiskError::into_io)
    }
}

/// Removes a file, and returns whether it was there. When this returns, it does not come back.
pub fn remove(path: &Path) -> io::Result<bool> {
    let disk = Disk::default();
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    disk.remove(path).map_err(DiskError::into_io)?;
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
