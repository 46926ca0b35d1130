//! The table about the database that nodes share.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use countersign_cluster::settings::{DatabaseSettings, UrlSource};
use serde::Deserialize;

use super::error::ConfigError;

const DEFAULT_MAX_LAG: u64 = 10;
const MAX_NAME_BYTES: usize = 64;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseTable {
    url: Option<String>,
    url_file: Option<PathBuf>,
    node: Option<String>,
    max_lag_seconds: Option<u64>,
}

/// A server that is a node among others.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    pub database: DatabaseSettings,
    /// What the others know this node by; `None` for a name that its data directory keeps.
    pub name: Option<String>,
    /// A node that lags behind for longer is not ready.
    pub max_lag: Duration,
}

/// A database URL from elsewhere than the file. Where it came from matters: on the command line every user can read a
/// password.
#[derive(Debug, Clone)]
pub struct GivenDatabase {
    url: String,
    source: UrlSource,
}

impl GivenDatabase {
    pub fn from_environment() -> Option<Self> {
        let url = std::env::var("COUNTERSIGN_DATABASE").ok().filter(|url| !url.is_empty())?;
        Some(Self { url, source: UrlSource::Environment })
    }
}

/// The value of a flag.
impl FromStr for GivenDatabase {
    type Err = Infallible;

    fn from_str(url: &str) -> Result<Self, Infallible> {
        Ok(Self { url: url.to_owned(), source: UrlSource::CommandLine })
    }
}

impl DatabaseTable {
    pub(super) fn resolve(self, given: Option<GivenDatabase>) -> Result<Option<NodeSettings>, ConfigError> {
        let value = |key, reason: String| ConfigError::Value { key, reason };
        if self.url.is_some() && self.url_file.is_some() {
            let reason = "there is `database.url_file` as well: leave one out".to_owned();
            return Err(value("database.url", reason));
        }
        let database = match (given, self.url, self.url_file) {
            (Some(given), _, _) => {
                Some(DatabaseSettings::parse(&given.url, given.source).map_err(ConfigError::Database)?)
            }
            (None, Some(url), _) => {
                let parsed = DatabaseSettings::parse(&url, UrlSource::File);
                Some(parsed.map_err(|error| value("database.url", error.to_string()))?)
            }
            (None, None, Some(path)) => {
                let text = std::fs::read_to_string(&path)
                    .map_err(|source| ConfigError::DatabaseFile { path: path.clone(), source })?;
                let parsed = DatabaseSettings::parse(text.trim(), UrlSource::File);
                Some(parsed.map_err(|error| value("database.url_file", error.to_string()))?)
            }
            (None, None, None) => None,
        };
        let name = self.node.map(check_name).transpose().map_err(|reason| value("database.node", reason))?;
        let seconds = self.max_lag_seconds.unwrap_or(DEFAULT_MAX_LAG);
        if !(1..=3_600).contains(&seconds) {
            return Err(value("database.max_lag_seconds", "must be from 1 to 3600".to_owned()));
        }
        Ok(database.map(|database| NodeSettings { database, name, max_lag: Duration::from_secs(seconds) }))
    }
}

fn check_name(name: String) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_plain) {
        return Err(format!(
            "a name of a node has letters, digits, `-`, `_` and `.`, at most {MAX_NAME_BYTES} of them"
        ));
    }
    Ok(name)
}
