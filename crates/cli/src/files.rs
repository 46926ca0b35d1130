//! Writing files so that they are there whole, or as they were.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::{error::CliError, paths::shown_path};

/// A temporary file in the directory of `target`, so that it can be renamed; removed again unless it is.
pub(crate) fn create_part(target: &Path) -> Result<NamedTempFile, CliError> {
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any program's new file, once it has its name; the user's umask still applies.
    let permissions = std::fs::Permissions::from_mode(0o666);
    let mut builder = Builder::new();
    builder.prefix(".countersign-").suffix(".part").permissions(permissions);
    builder.tempfile_in(dir).map_err(|error| CliError::file("written to", dir, error))
}

/// What is there is replaced by renaming, which must not take the place of a device or a pipe.
pub(crate) fn check_replaceable(target: &Path) -> Result<(), CliError> {
    if std::fs::metadata(target).is_ok_and(|found| !found.is_file()) {
        return Err(CliError::usage(
            format!("{} is there, and is not a plain file", shown_path(target)),
            "name another file with -o FILE",
        ));
    }
    Ok(())
}

/// A link in the place of a directory or file of ours would let what we write take the place of something elsewhere.
pub(crate) fn refuse_link(path: &Path) -> Result<(), CliError> {
    // With a slash behind it, a link is followed.
    let path: PathBuf = path.components().collect();
    if path.is_symlink() {
        return Err(CliError::usage(
            format!("{} is a symbolic link, and nothing is written through links", shown_path(&path)),
            "remove it, or name another directory with -o DIR",
        ));
    }
    Ok(())
}

/// Each directory between `dir` and this file, and the file itself.
pub(crate) fn refuse_links_below(dir: &Path, name: &Path) -> Result<(), CliError> {
    let mut path = dir.to_owned();
    for part in name {
        path.push(part);
        refuse_link(&path)?;
    }
    Ok(())
}

/// Whether a directory is not there yet, or has nothing in it.
pub(crate) fn is_free(dir: &Path) -> io::Result<bool> {
    match std::fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        found => found,
    }
}

/// At most a byte more than `max_bytes`, which is enough to see that it is too long.
pub(crate) fn read_bounded(path: &Path, max_bytes: usize) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(max_bytes as u64 + 1).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| CliError::file("read", path, error))
}

/// Writes a file that must not be there yet.
pub(crate) fn write_new(path: &Path, content: &[u8], mode: u32) -> Result<(), CliError> {
    let open = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = open.map_err(|error| CliError::file("written", path, error))?;
    file.write_all(content).map_err(|error| {
        // Ours since a moment ago, and not whole.
        let _ = std::fs::remove_file(path);
        CliError::file("written", path, error)
    })
}

/// Gives the temporary file its name. It is not synced to disk, which would take as long as the download: after a power
/// cut a file that is not whole may be found, as after any program's; verify it again.
pub(crate) fn finish(part: NamedTempFile, target: &Path) -> Result<(), CliError> {
    part.persist(target).map(|_| ()).map_err(|error| CliError::file("written", target, error.error))
}

/// Writes a result of ours whole or not at all, in the place of what was there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    check_replaceable(path)?;
    let mut part = create_part(path)?;
    let written: io::Result<()> = part.write_all(bytes);
    written.map_err(|error| CliError::file("written", path, error))?;
    finish(part, path)
}
