//! Where in the configuration file a mistake is, in its own lines.

use std::path::{Path, PathBuf};

use countersign_core::values::shown::shown_text;
use countersign_forge::forges::ForgeConfigError;

use crate::operate::config::error::{ConfigError, causes_of};

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
        ConfigError::Parse { path: self.path.clone(), line, reason, quoted: quoted.unwrap_or_default() }
    }

    /// Says in which line the setting is, if the file has it.
    pub(crate) fn locate(&self, error: ConfigError) -> ConfigError {
        let Some(line) = self.find_line(&error) else { return error };
        ConfigError::At { path: self.path.clone(), line, text: causes_of(&error) }
    }

    /// The line in which this table names this file, as messages say it.
    pub fn place_of(&self, table: &str, file: &Path) -> Option<String> {
        let keys = ["cert_file", "key_file"].into_iter();
        let line = keys.filter_map(|key| self.find(table, key, file.to_str())).next()?;
        Some(format!("{}, line {line}", self.path.display()))
    }

    fn find_line(&self, error: &ConfigError) -> Option<usize> {
        match error {
            ConfigError::Value { key, .. } => {
                let (table, key) = key.split_once('.').unwrap_or(("", key));
                self.find(table, key, None).or_else(|| self.find("", &format!("{table}.{key}"), None))
            }
            ConfigError::Webhook { name, .. } => self.find("webhook", "name", Some(name)),
            ConfigError::TokenFile { path, .. } | ConfigError::Token { path, .. } => {
                self.find("forge", "token_file", path.to_str())
            }
            ConfigError::Forge(error) => {
                let host = match error {
                    ForgeConfigError::Host { text, .. } => text,
                    ForgeConfigError::Twice { host }
                    | ForgeConfigError::Base { host, .. }
                    | ForgeConfigError::KnownHost { host, .. } => host,
                };
                self.find("forge", "host", Some(host))
            }
            ConfigError::HalfOfTls { .. } => {
                self.find("tls", "cert_file", None).or_else(|| self.find("tls", "key_file", None))
            }
            ConfigError::DatabaseFile { .. } => self.find("database", "url_file", None),
            ConfigError::DevInPublic(_) => self.find("", "dev", None),
            // It came from elsewhere.
            ConfigError::Database(_) => None,
            ConfigError::Read { .. } | ConfigError::Parse { .. } | ConfigError::At { .. } => None,
        }
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
    let nearest = known.iter().min_by_key(|name| distance(given, name));
    let most = 1 + given.chars().count() / 4;
    let meant = nearest.filter(|name| distance(given, name) <= most);
    Some(match meant {
        Some(name) => format!("unknown key `{}`. Did you mean `{name}`?", shown_text(given)),
        None => format!("unknown key `{}`. Known here are {}", shown_text(given), known.join(", ")),
    })
}

/// How many letters to insert, remove or change, or neighbours to swap, to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    // Keys are short. A longer word is none of them.
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
