//! The files that a user names, and those in directories.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::{error::CliError, paths::shown_path};

#[derive(Debug)]
pub(super) struct GivenFile {
    pub(super) path: PathBuf,
    /// Its path below the directory that was named, with `/`; its own name, if the file itself was named. None if that is
    /// no text, as no name in an index is.
    pub(super) place: Option<String>,
}

pub(super) fn list_files(given: &[PathBuf]) -> Result<Vec<GivenFile>, CliError> {
    let mut files = Vec::new();
    for path in given {
        // A file that is not there is no failed verification.
        if !fs::metadata(path).map_err(|error| CliError::file("read", path, error))?.is_dir() {
            let place = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            files.push(GivenFile { path: path.clone(), place });
            continue;
        }
        let before = files.len();
        add_directory(path, Some(""), &mut files)?;
        if files.len() == before {
            return Err(CliError::usage(
                format!("{} has no files", shown_path(path)),
                "name files, or a directory with files",
            ));
        }
    }
    Ok(files)
}

/// Where a whole release must be, a link could lead elsewhere by the time someone publishes it.
pub(super) fn refuse_links(given: &[PathBuf]) -> Result<(), CliError> {
    for path in given {
        // Without a slash at the end, which would follow the link.
        let path: PathBuf = path.components().collect();
        let found = fs::symlink_metadata(&path).map_err(|error| CliError::file("read", &path, error))?;
        if !found.is_file() && !found.is_dir() {
            return Err(special(&path));
        }
    }
    Ok(())
}

/// `place`: of the directory, and empty for the one that was named.
fn add_directory(dir: &Path, place: Option<&str>, files: &mut Vec<GivenFile>) -> Result<(), CliError> {
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(dir)
        .and_then(Iterator::collect::<io::Result<_>>)
        .map_err(|error| CliError::file("read", dir, error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| CliError::file("read", &path, error))?;
        let name = entry.file_name();
        let place = place.zip(name.to_str()).map(|(above, name)| match above {
            "" => name.to_owned(),
            above => format!("{above}/{name}"),
        });
        if kind.is_dir() {
            add_directory(&path, place.as_deref(), files)?;
        } else if kind.is_file() {
            files.push(GivenFile { path, place });
        } else {
            return Err(special(&path));
        }
    }
    Ok(())
}

fn special(path: &Path) -> CliError {
    CliError::unverified(
        format!("{} is neither a file nor a directory", shown_path(path)),
        "a link, device or pipe can become another file after it was verified. Put the file itself there",
    )
}
