//! Passphrases, from the terminal or from a file, and bytes that must not be seen.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::{fmt, fs::File, fs::OpenOptions, io, path::Path};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use zeroize::{Zeroize as _, Zeroizing};

use crate::words::error::{CliError, shown_path};

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
            "no passphrase was read from the terminal", "run it again, or pass --password-file FILE",
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

// Bytes that must not be seen: passphrases, and the text of private keys.

/// A secret that is overwritten when it is dropped. Its `Debug` shows nothing, unlike that of [`Zeroizing`].
pub(crate) struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A key or a passphrase is short; a longer file is something else.
    pub(super) fn read(path: &Path, limit: usize) -> Result<Self, CliError> {
        let mut content = Self::new(Vec::with_capacity(limit + 64));
        let read = File::open(path).and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut content.0));
        match read {
            Err(error) => Err(CliError::file("read", path, error)),
            Ok(length) if length > limit => Err(CliError::other(
                format!(
                    "{} is too long for a key or a passphrase: more than {limit} bytes",
                    shown_path(path)
                ),
                "check the path",
            )),
            Ok(_) => Ok(content),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds a byte, only within the room that it was made with, or a copy would be left behind.
    pub(super) fn push(&mut self, byte: u8) {
        debug_assert!(self.0.len() < self.0.capacity());
        self.0.push(byte);
    }

    /// A character of UTF-8, of however many bytes.
    pub(super) fn remove_last_char(&mut self) {
        let is_continuation = |byte: &u8| *byte & 0xc0 == 0x80;
        let end = self.0.iter().rposition(|byte| !is_continuation(byte)).unwrap_or(0);
        self.0[end..].zeroize();
        self.0.truncate(end);
    }

    pub(super) fn clear(&mut self) {
        self.0.zeroize();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(…)")
    }
}
