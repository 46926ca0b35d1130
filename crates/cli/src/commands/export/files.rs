//! The directory that an export is written to, and what stands in its script.

use std::{fs, path::Path};

use countersign_core::values::{digest::Sha512, key::Signature, shown::shown_within};

use crate::settings::config_dir::{is_free, refuse_link, refuse_links_below, write};
use crate::words::error::{CliError, shown_path};

/// The most characters of a comment, which is more than the longest path has.
const COMMENT_CHARS: usize = 1_200;

pub(super) const SCRIPT: &str = "verify.sh";

/// A file of an export. The name is one of ours, or that of a released file and `.asc`, if it is plain.
#[derive(Debug)]
pub(super) struct ExportedFile {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl ExportedFile {
    pub(super) fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }

    /// A raw signature on a digest: its 64 bytes, and of a FIDO key what these are a signature on.
    pub(super) fn of_signature(
        id: &str,
        signature: &Signature,
        digest: &Sha512,
    ) -> impl Iterator<Item = Self> {
        let bytes = Self::new(format!("signatures/{id}.sig"), *signature.ed25519_bytes());
        let framed = signature.framed(digest);
        let framed = framed.map(|framed| Self::new(format!("signatures/{id}.signed"), framed));
        [bytes].into_iter().chain(framed)
    }
}

/// Checks that the directory can be written to, before anything is asked of a server. `force`: files in it can be
/// replaced.
pub(super) fn check_free(dir: &Path, force: bool) -> Result<(), CliError> {
    refuse_link(dir)?;
    let is_free = is_free(dir).map_err(|error| CliError::file("used as a directory", dir, error))?;
    if is_free || force {
        return Ok(());
    }
    Err(CliError::usage(
        format!("{} is not empty", shown_path(dir)),
        "name another directory with -o DIR, or pass --force to replace the files of an earlier export",
    ))
}

/// Removes the old script first and writes the new one last, so that a script never stands beside files of two exports.
pub(super) fn write_all(dir: &Path, files: &[ExportedFile], script: &str) -> Result<(), CliError> {
    let target = dir.join(SCRIPT);
    // All of them, before the first is written. Renaming replaces a file, and goes through a directory that is a link.
    refuse_link(dir)?;
    for name in files.iter().map(|file| file.name.as_str()).chain([SCRIPT]) {
        refuse_links_below(dir, Path::new(name))?;
    }
    match fs::remove_file(&target) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(CliError::file("removed", &target, error));
        }
        Ok(()) | Err(_) => {}
    }
    fs::create_dir_all(dir).map_err(|error| CliError::file("created", dir, error))?;
    for ExportedFile { name, bytes } in files {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(dir);
        fs::create_dir_all(parent).map_err(|error| CliError::file("created", parent, error))?;
        write(&path, bytes)?;
    }
    write(&target, script.as_bytes())
}

/// A line in which text from outside can stand.
pub(super) fn comment(text: &str) -> String {
    format!("# {}", shown_within(text, COMMENT_CHARS))
}
