//! Mistakes in settings: what is wrong, and where in the configuration file, in its own lines.

use std::{error::Error as _, io, net::SocketAddr, path::Path, path::PathBuf};

use countersign_api::event::EventKind;
use countersign_cluster::settings::SettingsError;
use countersign_core::values::{key::KeyError, path::PathError, shown::shown_text};
use countersign_forge::forges::{ForgeConfigError, TokenError};
use thiserror::Error;

use crate::events::webhooks::{ShortSecret, settings::WebhookNameError};

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

// What is wrong with a setting.

/// A day. No time in the tables `[[webhook]]`, `[log]` and `[mirror]` can be longer.
pub(crate) const MAX_SECONDS: u64 = 24 * 60 * 60;

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the configuration file {path} is not valid, in line {line}: {reason}{quoted}")]
    Parse {
        path: PathBuf,
        line: usize,
        reason: String,
        /// The line itself, on a line of its own, or nothing.
        quoted: String,
    },
    /// Another error, with its place in the file.
    #[error("{text} ({path}, line {line})")]
    At { path: PathBuf, line: usize, text: String },
    #[error("the webhook `{}` in the configuration file: {problem}", shown_text(name))]
    Webhook { name: String, problem: WebhookProblem },
    #[error(
        "--dev is only for your own machine, and {0} is not a loopback address. Leave out --dev, or listen on 127.0.0.1"
    )]
    DevInPublic(SocketAddr),
    #[error("cannot read the token file {path}")]
    TokenFile { path: PathBuf, source: std::io::Error },
    #[error("the token in {path}: {source}")]
    Token { path: PathBuf, source: TokenError },
    #[error(transparent)]
    Forge(#[from] ForgeConfigError),
    #[error("TLS needs a certificate and its key: the {missing} is missing. Give both, or neither")]
    HalfOfTls { missing: &'static str },
    #[error(transparent)]
    Database(SettingsError),
    #[error("cannot read the file {path} that `database.url_file` names")]
    DatabaseFile { path: PathBuf, source: io::Error },
    #[error("`{key}` in the configuration file: {reason}")]
    Value { key: &'static str, reason: String },
}

#[derive(Debug, Error)]
pub enum WebhookProblem {
    #[error(transparent)]
    Name(#[from] WebhookNameError),
    #[error("another one has the same name: each keeps its progress under its own")]
    SameName,
    #[error("its url {0}")]
    Url(String),
    #[error("it has no secret: set `secret`, or `secret_file`")]
    NoSecret,
    #[error("it has both `secret` and `secret_file`: leave one out")]
    TwoSecrets,
    #[error("cannot read its secret file {}: {source}", path.display())]
    SecretFile { path: PathBuf, source: io::Error },
    #[error(transparent)]
    ShortSecret(#[from] ShortSecret),
    #[error("`{}` is not a type of event: the types are {}", shown_text(given), known_types())]
    Type { given: String },
    #[error("`{key}` is empty, so nothing would be sent. Leave it out to send everything")]
    Nothing { key: &'static str },
    #[error("its prefix `{}`: {source}", shown_text(given))]
    Prefix { given: String, source: PathError },
    #[error("its key: {0}")]
    Key(#[from] KeyError),
    #[error("`{key}` must be from 1 to {MAX_SECONDS}")]
    Time { key: &'static str },
    #[error("`retry_max_seconds` is less than `retry_min_seconds`")]
    Retries,
}

/// An error with its causes.
pub(crate) fn causes_of(error: &ConfigError) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    // Some errors quote their cause already.
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

fn known_types() -> String {
    EventKind::ALL.map(EventKind::name).join(", ")
}
