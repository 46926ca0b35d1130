//! How and how much is logged: the format and the level of log lines.

use std::str::FromStr;

use thiserror::Error;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{given}` is not one of {known}")]
pub struct UnknownName {
    given: String,
    known: String,
}

impl FromStr for LogFormat {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        find(text, [("text", Self::Text), ("json", Self::Json)])
    }
}

impl FromStr for LogLevel {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let known =
            [("error", Self::Error), ("warn", Self::Warn), ("info", Self::Info), ("debug", Self::Debug)];
        find(text, known)
    }
}

fn find<T: Copy, const N: usize>(text: &str, known: [(&str, T); N]) -> Result<T, UnknownName> {
    let found = known.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known = known.map(|(name, _)| name).join(", ");
        UnknownName { given: text.to_owned(), known }
    })
}
