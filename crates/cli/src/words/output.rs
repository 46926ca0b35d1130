//! What is shown to a person or to a program: plain lines or one JSON object, outputs of a CI job, questions, and a
//! result for each of several things.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::{fs::OpenOptions, io, path::PathBuf};

use clap::{Args, ValueEnum, builder::styling::AnsiColor, builder::styling::Style};
use countersign_core::values::{digest::Sha512, shown::is_unseen, shown::shown_text};
use serde_json::{Value, json};

use crate::words::error::{CliError, ErrorKind};
use crate::words::table::shorten_keys;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ColorChoice {
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
    /// Whether lists show whole keys and digests.
    full: bool,
    /// Whether every question is answered with yes.
    yes: bool,
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
        Self { json, quiet, color: color && !json, full: false, yes: false }
    }

    /// An output whose lists show whole keys, if `full` says so.
    pub(crate) fn with_keys(self, full: bool) -> Self {
        Self { full, ..self }
    }

    /// An output whose questions are answered with yes, if `yes` says so.
    pub(crate) fn with_yes(self, yes: bool) -> Self {
        Self { yes, ..self }
    }

    /// A list in which signers are only read, with short keys (D54). What people decide on keeps whole keys.
    pub(crate) fn list(&self, text: &str) -> String {
        if self.full { text.to_owned() } else { shorten_keys(text) }
    }

    /// A digest in a list, short unless whole keys are shown.
    pub(crate) fn digest(&self, digest: &Sha512) -> String {
        if self.full { digest.to_prefixed() } else { format!("sha512:{}…", digest.short()) }
    }

    /// An output for work that shows nothing.
    pub(crate) fn silent() -> Self {
        Self::new(true, true, ColorChoice::Never)
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
        if self.quiet && !self.json { Ok(()) } else { self.answer(text, value) }
    }

    /// A result that is what the command was asked for, so that --quiet does not silence it.
    pub(crate) fn answer(&self, text: &str, value: &Value) -> Result<(), CliError> {
        self.item(text, value).map(drop)
    }

    /// Prints one of many results, each on a line of its own; false once the reader is gone.
    pub(crate) fn item(&self, text: &str, value: &Value) -> Result<bool, CliError> {
        write(&if self.json { json_line(value) } else { self.lines(text) })
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
            let _ = write(&self.lines(text));
        }
    }

    /// Shows what a question is about. Where --yes has answered it, --quiet silences this too.
    pub(crate) fn show_question(&self, text: &str) {
        if !self.quiet || !self.yes {
            self.show(text);
        }
    }

    /// Whether --yes has answered every question.
    pub(crate) fn has_yes(&self) -> bool {
        self.yes
    }

    /// Asks before something is done that signs or publishes. Only a plain `y` or `yes` goes on.
    pub(crate) fn confirm(&self, question: &str) -> Result<(), CliError> {
        if self.ask(question)? {
            return Ok(());
        }
        Err(CliError::other("nothing was done: the question was not answered with yes", "run it again"))
    }

    /// Asks a question, unless --yes has answered it, and returns whether the answer is yes.
    pub(crate) fn ask(&self, question: &str) -> Result<bool, CliError> {
        if self.yes {
            return Ok(true);
        }
        if !io::stdin().is_terminal() {
            return Err(CliError::usage(
                format!("{question} No one can be asked: standard input is not a terminal"),
                "look at what is shown above, and pass --yes if that is what you want",
            ));
        }
        let answer = read_answer(&format!("{question} [y/N] "), "pass --yes instead")?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
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
            let _ = write(&json_line(&Self::error_to_json(error)));
            return;
        }
        self.show(&self.describe_error(error));
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
        if let Some(id) = &error.request_id {
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
        if let Some(id) = &error.request_id {
            value["request_id"] = json!(id);
        }
        for (name, detail) in &error.details {
            value[name] = detail.clone();
        }
        value
    }
}

/// Writes a value as one line of ASCII and visible characters (D39).
fn json_line(value: &Value) -> String {
    shown_json(&value.to_string()) + "\n"
}

/// Writes text, and returns false once the reader is gone: `countersign … | head` is no failure of ours.
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

/// What is not there has no field.
pub(crate) fn without_empty(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null() && *value != json!([]));
    }
    object
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

// Results as lines `COUNTERSIGN_NAME=VALUE`, for CI systems that read them back from a file (D107).

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OutputsArgs {
    /// Append results to this file as lines NAME=VALUE, as in "$GITHUB_OUTPUT" or a dotenv report of GitLab
    #[arg(long = "outputs", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

impl OutputsArgs {
    /// Names without their prefix, and values. All lines are written, or none.
    pub(crate) fn append(&self, results: &[(&str, &str)]) -> Result<(), CliError> {
        let Some(path) = &self.file else { return Ok(()) };
        let mut lines = String::new();
        for (name, value) in results {
            // A line end in a value would begin another result.
            if value.chars().any(char::is_control) {
                return Err(CliError::other(
                    format!("the result {name} has a control character, and is not written to --outputs"),
                    "check the name of the release",
                ));
            }
            lines.push_str(&format!("COUNTERSIGN_{name}={value}\n"));
        }
        let file = OpenOptions::new().append(true).create(true).open(path);
        let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
        written.map_err(|error| CliError::file("written", path, error))
    }
}

// Questions to the person at the terminal.

/// The line behind the question, with its end; empty at the end of the input.
fn read_answer(question: &str, hint: &str) -> Result<String, CliError> {
    eprint!("{question}");
    let mut answer = String::new();
    let read = io::stderr().flush().and_then(|()| io::stdin().lock().read_line(&mut answer));
    read.map_err(|error| CliError::other("the answer could not be read", hint).because(error))?;
    Ok(answer)
}

/// Asks a person, on a terminal, until the answer can be used. `fallback` is taken if the answer is empty.
pub(crate) fn ask_text<T>(
    output: Output,
    question: &str,
    fallback: Option<&str>,
    parse: impl Fn(&str) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let shown = fallback.map(|fallback| format!(" [{}]", shown_text(fallback))).unwrap_or_default();
    loop {
        let hint = "answer it, or pass the flag; --help lists them";
        let answer = read_answer(&format!("{question}{shown} "), hint)?;
        if answer.is_empty() {
            return Err(CliError::usage("the question was not answered", hint));
        }
        let answer = match (answer.trim(), fallback) {
            ("", Some(fallback)) => fallback,
            (answer, _) => answer,
        };
        match parse(answer) {
            Ok(parsed) => return Ok(parsed),
            Err(error) => output.show(&output.describe_error(&error)),
        }
    }
}

// A command over several things goes through all of them, and reports each (D218).

/// What became of several things. What is done already counts as done.
pub(crate) struct Several {
    output: Output,
    tried: usize,
    failed: Vec<Failure>,
    /// Whether something is done, and not only read.
    does: bool,
}

struct Failure {
    name: String,
    error: CliError,
}

impl Several {
    pub(crate) fn new(output: Output) -> Self {
        Self { output, tried: 0, failed: Vec::new(), does: true }
    }

    /// Collects the results of questions that change nothing.
    pub(crate) fn reading(output: Output) -> Self {
        Self { does: false, ..Self::new(output) }
    }

    /// Counts one thing, and remembers why it failed. `None` if it did: the next one is tried all the same.
    pub(crate) fn keep<T>(&mut self, name: &str, outcome: Result<T, CliError>) -> Option<T> {
        self.tried += 1;
        self.keep_later(name, outcome)
    }

    /// Counts one thing only if it failed: a later step counts the others.
    pub(crate) fn keep_found<T>(&mut self, name: &str, outcome: Result<T, CliError>) -> Option<T> {
        self.tried += usize::from(outcome.is_err());
        self.keep_later(name, outcome)
    }

    /// Remembers why a later step failed of a thing that is counted already.
    pub(crate) fn keep_later<T>(&mut self, name: &str, outcome: Result<T, CliError>) -> Option<T> {
        let error =
            |error: CliError| Failure { name: name.to_owned(), error: error.naming("NAME", &quote(name)) };
        outcome.map_err(|failed| self.failed.push(error(failed))).ok()
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Changes why things failed, where a command says it in another way.
    pub(crate) fn change_errors(&mut self, change: fn(CliError) -> CliError) {
        let failed = std::mem::take(&mut self.failed).into_iter();
        self.failed = failed.map(|Failure { name, error }| Failure { name, error: change(error) }).collect();
    }

    /// Reports all: `text` and `value` tell what was done. The error of a single thing is its own.
    pub(crate) fn finish(mut self, text: &str, mut value: Value) -> Result<(), CliError> {
        let output = self.output;
        if self.failed.is_empty() {
            return output.result(text, &value);
        }
        output.line(text);
        if self.tried == 1
            && let Some(failure) = self.failed.pop()
        {
            return Err(failure.error);
        }
        for Failure { name, error } in &self.failed {
            output.warn(&format!("{}: {}", shown_text(name), output.describe_error(error)));
        }
        value["failed"] = self.failed.iter().map(Failure::to_json).collect();
        Err(self.summary().with_details(value))
    }

    /// The error for all of them. If nothing at all was done, and for one kind of reason, the exit code is that of this
    /// kind.
    fn summary(&self) -> CliError {
        let failed = self.failed.len();
        let mut kinds = self.failed.iter().map(|failure| failure.error.kind());
        let first = kinds.next().unwrap_or(ErrorKind::Other);
        let kind = match failed == self.tried && kinds.all(|kind| kind == first) {
            true => first,
            false => ErrorKind::Incomplete,
        };
        let names: Vec<&str> = self.failed.iter().map(|failure| failure.name.as_str()).collect();
        let (done, hint) = match self.does {
            true => (
                "done",
                "each of them says above what to do about it; then run this again: what is done already counts as done",
            ),
            false => ("asked", "each of them says above what to do about it; then run this again"),
        };
        let names = shown_text(&names.join(", "));
        CliError::new(kind, format!("{failed} of {} could not be {done}: {names}", self.tried), hint)
    }
}

impl Failure {
    fn to_json(&self) -> Value {
        let mut value = Output::error_to_json(&self.error);
        value["name"] = json!(self.name);
        value
    }
}
