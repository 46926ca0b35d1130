//! Files that travel between a computer with a key and one with a network.

use std::{fs, path::Path};

use countersign_core::values::json::ParseError;

use crate::{error::CliError, paths::shown_path};

/// `made_by`: the command that writes such a file.
pub(crate) fn read<T>(
    file: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    made_by: &str,
) -> Result<T, CliError> {
    let bytes = fs::read(file).map_err(|error| CliError::file("read", file, error))?;
    parse(&bytes).map_err(|error| {
        CliError::other(
            format!("{} cannot be used", shown_path(file)),
            format!("it must come from `{made_by}`"),
        )
        .because(error)
    })
}

/// What is signed must not be overwritten with its signatures.
pub(crate) fn check_output(file: &Path, output: &Path) -> Result<(), CliError> {
    let same = |a: &Path, b: &Path| a == b || fs::canonicalize(a).ok() == fs::canonicalize(b).ok();
    if fs::exists(output).unwrap_or(false) && same(file, output) {
        return Err(CliError::usage(
            "-o names the file that is to be signed",
            "choose another name for the signatures",
        ));
    }
    Ok(())
}
