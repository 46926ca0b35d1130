//! Writing files so that they are there whole, or as they were.

use std::{
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use tempfile::{Builder, NamedTempFile};

use crate::error::CliError;

/// A temporary file in the directory of `target`, so that it can be renamed; removed again unless it is.
pub(crate) fn create_part(target: &Path) -> Result<NamedTempFile, CliError> {
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any program's new file, once it has its name; the user's umask still applies.
    let permissions = std::fs::Permissions::from_mode(0o666);
    let mut builder = Builder::new();
    builder.prefix(".countersign-").suffix(".part").permissions(permissions);
    builder.tempfile_in(dir).map_err(|error| CliError::file("written to", dir, error))
}

/// Gives the temporary file its name.
pub(crate) fn finish(part: NamedTempFile, target: &Path) -> Result<(), CliError> {
    part.persist(target).map(|_| ()).map_err(|error| CliError::file("written", target, error.error))
}

/// Writes a result of ours whole or not at all, in the place of what was there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let mut part = create_part(path)?;
    let written: io::Result<()> = part.write_all(bytes);
    written.map_err(|error| CliError::file("written", path, error))?;
    finish(part, path)
}
