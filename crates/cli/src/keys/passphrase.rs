//! Passphrases: from the terminal, or from a file.

use std::{
    io::{self, IsTerminal as _},
    path::Path,
};

use countersign_core::shown::shown_text;

use super::{read_bounded, secret::SecretBytes};
use crate::error::CliError;

const MAX_FILE_BYTES: usize = 64 * 1024;

/// Whether somebody can be asked. The question goes to the terminal itself, but a script that has one and gives us
/// another standard input does not expect a question.
pub(crate) fn can_be_asked() -> bool {
    io::stdin().is_terminal()
}

/// Asks on the terminal, without showing what is typed.
pub(crate) fn ask(question: &str) -> Result<SecretBytes, CliError> {
    match rpassword::prompt_password(question) {
        Ok(typed) => Ok(SecretBytes::new(typed.into_bytes())),
        Err(error) => Err(CliError::other(
            "no passphrase was read from the terminal",
            "run it again, or pass --password-file FILE",
        )
        .because(error)),
    }
}

/// The first line of a file, without its end.
pub(crate) fn read_file(path: &Path) -> Result<SecretBytes, CliError> {
    let content = read_bounded(path, MAX_FILE_BYTES)?;
    let line = content.as_bytes().split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        let path = shown_text(&path.display().to_string());
        let message = format!("the first line of the password file {path} is empty");
        return Err(CliError::usage(
            message,
            "write the passphrase there; `keygen --no-password` makes a key that needs none",
        ));
    }
    Ok(SecretBytes::new(line.to_vec()))
}
