//! Small files beside the repository, each replaced or removed as a whole.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use crate::disk::sync_parent;

/// What has just been done while a file is replaced. A crash can come after each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaceStep {
    Written,
    Synced,
    Renamed,
    DirSynced,
}

/// A power cut leaves the old content or the new one.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_in_steps(path, text, |_| {})
}

/// The same, for one who wants to know how far it came.
pub fn replace_in_steps(path: &Path, text: &str, note: impl Fn(ReplaceStep)) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    note(ReplaceStep::Written);
    file.sync_all()?;
    note(ReplaceStep::Synced);
    fs::rename(&unfinished, path)?;
    note(ReplaceStep::Renamed);
    sync_parent(path)?;
    note(ReplaceStep::DirSynced);
    Ok(())
}

/// Whether it was there. When this returns, it does not come back.
pub fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => sync_parent(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// At most `max_bytes`; `None` if it is not there.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(found) if found.len() > max_bytes => Err(io::Error::other("it is too large")),
        Ok(_) => fs::read(path).map(Some),
    }
}

/// The same for text.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<Option<String>> {
    let text =
        |bytes| String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
    read(path, max_bytes)?.map(text).transpose()
}

/// A directory whose names, and whose own name, do not go back after a power cut. It is made where it is missing.
pub fn settle_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    sync_parent(dir)?;
    File::open(dir)?.sync_all()
}
