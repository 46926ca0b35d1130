//! What is shown to a person, or to a program: plain lines, or one JSON object.

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use countersign_core::values::shown::is_unseen;
use serde_json::{Value, json};

use crate::{error::CliError, prompt::Confirmation};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// How a command speaks. Text from outside must have gone through `shown_text` before it gets here (D39).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    color: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool, color: ColorChoice) -> Self {
        let color = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                io::stdout().is_terminal()
                    && io::stderr().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        };
        Self { json, quiet, color: color && !json }
    }

    /// An output for work that shows nothing.
    pub(crate) fn silent() -> Self {
        Self { json: true, quiet: true, color: false }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether only the bare result is wanted.
    pub(crate) fn is_terse(&self) -> bool {
        self.quiet
    }

    /// Whether there may be a progress bar.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && !self.json && io::stderr().is_terminal()
    }

    /// The result of a command: `text` for people, `value` where --json asks for it.
    pub(crate) fn result(&self, text: &str, value: &Value) -> Result<(), CliError> {
        if self.json {
            return print_json(value);
        }
        if self.quiet {
            return Ok(());
        }
        print(&self.lines(text))
    }

    /// A result that is what the command was asked for, so that --quiet does not silence it.
    pub(crate) fn answer(&self, text: &str, value: &Value) -> Result<(), CliError> {
        if self.json { print_json(value) } else { print(&self.lines(text)) }
    }

    /// Prints one of many results, each on a line of its own; false once the reader is gone.
    pub(crate) fn item(&self, text: &str, value: &Value) -> Result<bool, CliError> {
        let line = if self.json { json_line(value) } else { self.lines(text) };
        write(&line)
    }

    /// What a person should know besides the result; never on standard output.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            self.show(text);
        }
    }

    /// A reason for caution, which --quiet does not hide; never on standard output. In JSON the result has it.
    pub(crate) fn warn(&self, text: &str) {
        if !self.json {
            self.show(text);
        }
    }

    /// A part of the result that is known before the whole.
    pub(crate) fn line(&self, text: &str) {
        if !self.quiet && !self.json {
            // If the reader is gone, writing the result itself says so.
            let _ = print(&self.lines(text));
        }
    }

    /// Shows what a question is about. Where --yes has answered it, --quiet silences this too.
    pub(crate) fn show_question(&self, text: &str, confirmation: Confirmation) {
        if !self.quiet || confirmation == Confirmation::Ask {
            self.show(text);
        }
    }

    /// What must be read also by those who like it quiet; never on standard output.
    pub(crate) fn show(&self, text: &str) {
        // The reader may be gone, which is no reason to panic.
        let _ = io::stderr().write_all(self.lines(text).as_bytes());
    }

    pub(crate) fn good(&self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default().bold(), text)
    }

    pub(crate) fn bad(&self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn strong(&self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// Makes whole lines fit to be shown.
    fn lines(&self, text: &str) -> String {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        shown_lines(text, self.color) + end
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// An error with its causes and the way out. With --json it is the one object on standard output.
    pub(crate) fn error(&self, error: &CliError) {
        if self.json {
            // The reader may be gone; the exit code still speaks.
            let _ = print_json(&Self::error_to_json(error));
            return;
        }
        let _ = io::stderr().write_all(self.lines(&self.describe_error(error)).as_bytes());
    }

    /// An error for people, in several lines.
    pub(crate) fn describe_error(&self, error: &CliError) -> String {
        let mut text = format!("{} {error}\n", self.bad("error:"));
        for cause in error.causes() {
            text.push_str(&format!("  because: {cause}\n"));
        }
        if !error.hint().is_empty() {
            text.push_str(&format!("{} {}\n", self.strong("hint:"), error.hint()));
        }
        if let Some(id) = error.request_id() {
            text.push_str(&format!("request id: {id}\n"));
        }
        text
    }

    /// Writes an error for programs.
    pub(crate) fn error_to_json(error: &CliError) -> Value {
        let kind = error.kind();
        let mut value = json!({
            "error": error.to_string(),
            "kind": kind,
            "exit_code": kind.exit_code(),
            "causes": error.causes(),
            "hint": error.hint(),
        });
        if let Some(id) = error.request_id() {
            value["request_id"] = json!(id);
        }
        for (name, detail) in error.details() {
            value[name] = detail.clone();
        }
        value
    }
}

fn print_json(value: &Value) -> Result<(), CliError> {
    print(&json_line(value))
}

/// Writes a value as one line of ASCII and visible characters (D39).
fn json_line(value: &Value) -> String {
    shown_json(&value.to_string()) + "\n"
}

/// Prints text. `countersign … | head` is no failure of ours.
fn print(text: &str) -> Result<(), CliError> {
    write(text).map(drop)
}

/// Writes text, and returns false once the reader is gone.
fn write(text: &str) -> Result<bool, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => {
            Err(CliError::other("the result could not be printed", "check standard output").because(error))
        }
    }
}

/// An argument as it is typed into a shell.
pub(crate) fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Shows JSON in which nothing is invisible: such characters only occur inside its strings, where they may be escaped.
fn shown_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unseen(c) {
            let mut units = [0; 2];
            shown.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Shows text of several lines, of which parts came from outside: escaped like `shown_text`, except for line ends and,
/// if it has `colours`, what we put there ourselves. A last net under what was escaped where it came in.
fn shown_lines(text: &str, colours: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push(c),
            '\u{1b}' if colours => shown.push(c),
            c if is_unseen(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends_and_our_colours() {
        assert_eq!(shown_lines("\u{1b}a\n", false), "\\u{1b}a\n");
        assert_eq!(
            shown_lines("\u{1b}[1ma\u{1b}[0m\nb\u{202e}\r\u{7}", true),
            "\u{1b}[1ma\u{1b}[0m\nb\\u{202e}\\u{d}\\u{7}"
        );
    }
}
