//! Why a command failed, and what to do about it. The kind sets the exit code. Paths are shown as users type them.

use std::ffi::{OsStr, OsString};
use std::{env, error::Error as _, io, path::Path, path::PathBuf, process::ExitCode};

use countersign_api::error_code::ErrorCode;
use countersign_core::rules::decide::proposal::DropRefusal;
use countersign_core::values::{bounds::REASON_CHARS, shown::shown_text};
use countersign_forge::https::SetupError;
use countersign_server::{operate::config::ConfigError, serve::start::StartError};
use countersign_store::{
    StoreError, audit::CheckError, machine::data_dir::DataDirError, store::OpenDataError,
};
use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// The hint if a reason is too short or too long.
pub(crate) const REASON_HINT: &str = "give a --reason of 1 to 1,000 characters";
const _: () = assert!(REASON_CHARS == 1_000, "the hint says so");

/// The detail with the user's file that could not be read or written.
const FILE_DETAIL: &str = "file";
/// What the environment variables of this program begin with.
const VARIABLES: &str = "COUNTERSIGN_";
/// The detail with the checkpoint that the one shown now contradicts.
pub(crate) const SEEN_CHECKPOINT: &str = "seen_checkpoint";

/// What went wrong, as scripts need to know it. The numbers are documented in docs/cli.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErrorKind {
    Other = 1,
    Usage = 2,
    /// What was to be verified is not proven, or proven wrong.
    Verification = 3,
    Revoked = 4,
    Unreachable = 5,
    /// The time that was set for waiting is over.
    TimedOut = 6,
    /// What was waited for was replaced by another one.
    Replaced = 7,
    /// What was waited for was dropped, or the server does not let it be seen.
    Refused = 8,
    /// A monitor has told of changes.
    Changed = 9,
    /// Some of several things were done, and some were not.
    Incomplete = 10,
}

#[derive(Debug, Error)]
#[error("{message}")]
#[must_use]
pub(crate) struct CliError {
    kind: ErrorKind,
    message: String,
    hint: String,
    /// More details for programs to read, beside the message.
    pub(crate) details: Map<String, Value>,
    /// The id of the server's answer, safe to show.
    pub(crate) request_id: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ErrorKind {
    pub(crate) fn exit_code(self) -> u8 {
        self as u8
    }
}

impl CliError {
    /// `hint`: the next step. Text from outside must come escaped, or through `because`.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: hint.into(),
            details: Map::new(),
            request_id: None,
            source: None,
        }
    }

    pub(crate) fn other(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Other, message, hint)
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message, hint)
    }

    pub(crate) fn unverified(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Verification, message, hint)
    }

    pub(crate) fn no_https(source: SetupError) -> Self {
        Self::other("https cannot be set up", "check the system's certificates").because(source)
    }

    pub(crate) fn unreachable(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unreachable, message, hint)
    }

    /// A file of the user's that could not be read or written.
    pub(crate) fn file(what: &str, path: &Path, source: io::Error) -> Self {
        let message = format!("{} cannot be {what}", shown_path(path));
        let hint = match source.kind() {
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::AlreadyExists => {
                "nothing is overwritten: move it away, or use another name or directory"
            }
            io::ErrorKind::PermissionDenied => "check who owns it and its mode",
            _ => "check the disk and the path",
        };
        let named = Value::from(path.display().to_string());
        Self::other(message, hint).because(source).with_detail(FILE_DETAIL, named)
    }

    /// Says in the hint which option named the file, if one of these arguments did, or else which variable.
    pub(crate) fn naming_option(mut self, arguments: &[OsString]) -> Self {
        let Some(path) = self.details.get(FILE_DETAIL).and_then(Value::as_str).map(Path::new) else {
            return self;
        };
        // A file cannot be written because of the directory that it is in.
        let is_named = |value: &OsStr| {
            !value.is_empty() && (path.starts_with(value) || Path::new(value).parent() == Some(path))
        };
        let pairs = arguments.windows(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let joined = arguments.iter().filter_map(|argument| argument.to_str()?.split_once('='));
        let joined = joined.map(|(option, value)| (option.into(), value.into()));
        let options = pairs.chain(joined).map(|given| ("-", given));
        let variables = env::vars_os().map(|set| (VARIABLES, set));
        let named = options.chain(variables).find_map(|(begin, (name, value)): (_, (OsString, OsString))| {
            name.into_string().ok().filter(|name| name.starts_with(begin) && is_named(&value))
        });
        if let Some(name) = named {
            self.hint = format!("{} names it: {}", shown_text(&name), self.hint);
        }
        self
    }

    pub(crate) fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Puts what is meant in the place of a word such as NAME in the hint, so that its commands can be pasted.
    pub(crate) fn naming(mut self, word: &str, meant: &str) -> Self {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '=');
        let stands_alone =
            |before: &str, behind: &str| !before.ends_with(is_part) && !behind.starts_with(is_part);
        self.hint = replace_where(&self.hint, word, meant, stands_alone);
        self
    }

    /// Says first whom it is about.
    pub(crate) fn prefixed(mut self, whom: &str) -> Self {
        self.message = format!("{whom}: {}", self.message);
        self
    }

    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    pub(crate) fn with_details(mut self, details: impl Into<Value>) -> Self {
        if let Value::Object(details) = details.into() {
            self.details = details;
        }
        self
    }

    pub(crate) fn with_detail(mut self, name: &str, value: Value) -> Self {
        self.details.insert(name.to_owned(), value);
        self
    }

    pub(crate) fn with_request_id(mut self, id: Option<&str>) -> Self {
        self.request_id = id.map(str::to_owned);
        self
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn hint(&self) -> &str {
        &self.hint
    }

    /// Whether the server answered, and refused what was asked.
    pub(crate) fn is_refusal(&self) -> bool {
        let status = self.details.get("status").and_then(Value::as_u64);
        self.kind == ErrorKind::Other && status.is_some_and(|status| (400..500).contains(&status))
    }

    /// Whether a log has signed two checkpoints that contradict each other.
    pub(crate) fn is_log_fork(&self) -> bool {
        self.details.contains_key(SEEN_CHECKPOINT)
    }

    /// The code of the server's answer, if this version knows it (D230).
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        self.details.get("code").and_then(Value::as_str).and_then(ErrorCode::parse)
    }

    /// The message with its causes, in one line.
    pub(crate) fn describe(&self) -> String {
        [vec![self.to_string()], self.causes()].concat().join(": ")
    }

    /// The causes, outermost first, safe to show.
    pub(crate) fn causes(&self) -> Vec<String> {
        causes_from(self.source()).map(|error| shown_text(&error.to_string())).collect()
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind.exit_code())
    }
}

fn causes_from<'e>(
    first: Option<&'e (dyn std::error::Error + 'static)>,
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(first, |error| (*error).source())
}

/// An error whose own text says all: its causes stay behind it.
fn wrap(error: impl std::error::Error + Send + Sync + 'static, hint: &str) -> CliError {
    let message = error.to_string();
    // The text of `error` is the message already.
    let causes: Vec<String> = causes_from(error.source()).map(ToString::to_string).collect();
    let wrapped = CliError::other(message, hint);
    if causes.is_empty() { wrapped } else { wrapped.because(causes.join(": ")) }
}

/// Errors whose own text says all, each with the next step.
macro_rules! wrapped {
    ($($error:ty => $hint:literal),* $(,)?) => {$(
        impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                wrap(error, $hint)
            }
        }
    )*};
}

wrapped! {
    ConfigError => "correct the flag or the configuration file; `countersign serve --help` lists them",
    StartError => "`countersign serve --help` shows how to choose another address or data directory",
    DataDirError => "name the directory with --data-dir; only one process at a time may use it",
    DropRefusal => "`countersign admin drop` removes only what is pending",
}

impl From<OpenDataError> for CliError {
    fn from(error: OpenDataError) -> Self {
        StartError(error.into()).into()
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        CliError::other(
            "the repository could not be changed",
            "check the disk; nothing was changed, so the command can be repeated",
        )
        .because(error)
    }
}

impl From<CheckError> for CliError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::NotARepository { .. } | CheckError::NoBranch { .. } => {
                wrap(error, "name a data directory, the repo.git in it, or a clone of that")
            }
            CheckError::Shallow { .. } => {
                wrap(error, "run `git fetch --unshallow` there, or pass --since with a commit that it has")
            }
            CheckError::NotInHistory { .. } => CliError::unverified(
                error.to_string(),
                "compare the id with what an earlier check printed; if it is right, the history was cut off or \
                 rewritten since",
            ),
            CheckError::SinceUnreadable { .. } => {
                wrap(error, "check the whole history, without --since; `git fsck` says what is damaged")
            }
            CheckError::Store(_) => wrap(error, "check the disk, and who may read the directory"),
        }
    }
}

/// Replaces a word wherever `is_meant` says so of the text before it and behind it.
pub(crate) fn replace_where(
    text: &str,
    word: &str,
    meaning: &str,
    is_meant: impl Fn(&str, &str) -> bool,
) -> String {
    let (mut replaced, mut done) = (String::new(), 0);
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        if is_meant(&text[..at], &text[end..]) {
            replaced.push_str(&text[done..at]);
            replaced.push_str(meaning);
            done = end;
        }
    }
    replaced + &text[done..]
}

// The paths of files, as users see them.

pub(crate) fn shown_path(path: &Path) -> String {
    shown_text(&path.display().to_string())
}

/// A file beside another one, such as `FILE.pub`.
pub(crate) fn add_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
