//! Small files in the data directory, each replaced or removed as a whole.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

/// A power cut leaves the old content or the new one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    sync_dir(path)
}

/// Whether it was there. When this returns, it does not come back.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => sync_dir(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// At most `max_bytes`; `None` if it is not there.
pub(crate) fn read(path: &Path, max_bytes: u64) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(found) if found.len() > max_bytes => Err(io::Error::other("it is too large")),
        Ok(_) => fs::read_to_string(path).map(Some),
    }
}

fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
