//! Mistakes in settings: what is wrong, and where in the configuration file, in its own lines.

use std::{fmt::Display, io, path::Path, path::PathBuf};

use countersign_core::values::shown::shown_text;
use strsim::osa_distance;
use thiserror::Error;

/// The text of a configuration file, for messages.
#[derive(Debug, Clone)]
pub struct ConfigSource {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl ConfigSource {
    /// Why the file is not valid. The line itself is quoted unless it could hold a secret.
    pub(crate) fn explain(&self, error: &toml::de::Error) -> ConfigError {
        let before = error.span().and_then(|span| self.text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let quoted = self
            .text
            .lines()
            .nth(line - 1)
            .filter(|_| !self.text.contains("webhook") && !self.text.contains("database"));
        let quoted = quoted.map(|text| format!("\n  {line} | {}", shown_text(text.trim_end())));
        let reason = explain_unknown(error.message()).unwrap_or_else(|| error.message().to_owned());
        let (path, quoted) = (self.path.display(), quoted.unwrap_or_default());
        ConfigError::new(format!(
            "the configuration file {path} is not valid, in line {line}: {reason}{quoted}"
        ))
    }

    /// Says in which line the setting is, if the file has it.
    pub(crate) fn locate(&self, error: ConfigError) -> ConfigError {
        let Some(SettingName { table, key, value }) = &error.setting else { return error };
        let dotted = format!("{table}.{key}");
        let line =
            self.find(table, key, value.as_deref()).or_else(|| self.find("", &dotted, value.as_deref()));
        let Some(line) = line else { return error };
        let because = error.source.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        ConfigError::new(format!("{}{because} ({}, line {line})", error.text, self.path.display()))
    }

    /// The line in which this table names this file, as messages say it.
    pub fn line_of(&self, table: &str, file: &Path) -> Option<String> {
        let keys = ["cert_file", "key_file"].into_iter();
        let line = keys.filter_map(|key| self.find(table, key, file.to_str())).next()?;
        Some(format!("{}, line {line}", self.path.display()))
    }

    /// The last line that sets this key of this table, to this value if one is given.
    fn find(&self, table: &str, key: &str, value: Option<&str>) -> Option<usize> {
        let (mut current, mut found) = ("", None);
        for (number, line) in self.text.lines().enumerate() {
            let line = line.trim();
            if line.starts_with('[') {
                current = line.trim_start_matches('[').split(']').next().unwrap_or_default().trim();
            } else if let Some((name, rest)) = line.split_once('=')
                && current == table
                && name.trim() == key
                && value.is_none_or(|value| rest.contains(value))
            {
                found = Some(number + 1);
            }
        }
        found
    }
}

/// The parser lists every known key. One that was meant says more.
pub fn explain_unknown(message: &str) -> Option<String> {
    let (given, known) = message.strip_prefix("unknown field `")?.split_once('`')?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    // Keys are short. A longer word is none of them.
    let word: String = given.chars().take(64).collect();
    let nearest = known.iter().min_by_key(|name| osa_distance(&word, name));
    let most = 1 + given.chars().count() / 4;
    let meant = nearest.filter(|name| osa_distance(&word, name) <= most);
    Some(match meant {
        Some(name) => format!("unknown key `{}`. Did you mean `{name}`?", shown_text(given)),
        None => format!("unknown key `{}`. Known here are {}", shown_text(given), known.join(", ")),
    })
}

// What is wrong with a setting.

/// A day. No time in the tables `[[webhook]]`, `[log]` and `[mirror]` can be longer.
pub(crate) const MAX_SECONDS: u64 = 24 * 60 * 60;

/// A mistake in a setting.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct ConfigError {
    text: String,
    setting: Option<SettingName>,
    source: Option<io::Error>,
}

/// Names a setting of the file: a table, a key of it, and what the value contains.
#[derive(Debug)]
struct SettingName {
    table: &'static str,
    key: &'static str,
    value: Option<String>,
}

impl ConfigError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), setting: None, source: None }
    }

    /// A value that is not accepted. `key` is written as in `limits.assets`.
    pub(crate) fn value(key: &'static str, reason: impl Display) -> Self {
        let (table, name) = key.split_once('.').unwrap_or(("", key));
        Self::new(format!("`{key}` in the configuration file: {reason}")).at(table, name, None)
    }

    pub(crate) fn at(self, table: &'static str, key: &'static str, value: Option<&str>) -> Self {
        Self { setting: Some(SettingName { table, key, value: value.map(str::to_owned) }), ..self }
    }

    pub(crate) fn because(self, source: io::Error) -> Self {
        Self { source: Some(source), ..self }
    }
}
