//! Passphrases: from the terminal, or from a file.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use super::secret::SecretBytes;
use crate::{error::CliError, paths::shown_path};

const MAX_FILE_BYTES: usize = 64 * 1024;
const MAX_TYPED_BYTES: usize = 1_024;

/// Whether someone can be asked. The question goes to the terminal itself, but a script that has one and gives us
/// another standard input does not expect a question.
pub(crate) fn can_be_asked() -> bool {
    io::stdin().is_terminal()
}

/// Asks on the terminal, without showing what is typed.
pub(crate) fn ask(question: &str) -> Result<SecretBytes, CliError> {
    ask_on_terminal(question).map_err(|error| {
        CliError::other(
            "no passphrase was read from the terminal",
            "run it again, or pass --password-file FILE",
        )
        .because(error)
    })
}

fn ask_on_terminal(question: &str) -> io::Result<SecretBytes> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let quiet = Quiet::make(terminal.try_clone()?)?;
    // Only now: whatever is typed in answer is not shown any more.
    terminal.write_all(question.as_bytes())?;
    let typed = read_line(&mut terminal);
    terminal.write_all(b"\n")?;
    drop(quiet);
    typed
}

/// A terminal that shows nothing and sends no signals, so that Ctrl-C cannot leave it so; as before once it is dropped.
struct Quiet {
    terminal: File,
    before: Termios,
}

impl Quiet {
    fn make(terminal: File) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG;
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed before the question was no answer to it, and has been shown.
        tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Drain, &self.before);
    }
}

/// A line, with the keys for correcting it that people expect.
fn read_line(terminal: &mut File) -> io::Result<SecretBytes> {
    const INTERRUPT: u8 = 0x03;
    const END: u8 = 0x04;
    const CLEAR: u8 = 0x15;
    // With all its room from the beginning: growing would leave copies behind.
    let mut line = SecretBytes::new(Vec::with_capacity(MAX_TYPED_BYTES));
    loop {
        let mut byte = [0];
        let count = terminal.read(&mut byte)?;
        match (count, byte[0]) {
            (0, _) | (_, b'\n' | b'\r' | END) => return Ok(line),
            (_, INTERRUPT) => return Err(io::Error::other("interrupted by Ctrl-C")),
            (_, CLEAR) => line.clear(),
            (_, 0x08 | 0x7f) => line.remove_last_char(),
            (_, byte) if line.as_bytes().len() < MAX_TYPED_BYTES => line.push(byte),
            _ => return Err(io::Error::other("it is too long")),
        }
    }
}

/// The first line of a file, without its end.
pub(crate) fn read_file(path: &Path) -> Result<SecretBytes, CliError> {
    let content = SecretBytes::read(path, MAX_FILE_BYTES)?;
    let line = content.as_bytes().split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        let message = format!("the first line of the password file {} is empty", shown_path(path));
        return Err(CliError::usage(
            message,
            "write the passphrase there; `keygen --no-password` makes a key that needs none",
        ));
    }
    Ok(SecretBytes::new(line.to_vec()))
}
