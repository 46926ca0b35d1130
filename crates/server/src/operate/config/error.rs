//! What is wrong with a setting.

use std::{error::Error as _, io, net::SocketAddr, path::PathBuf};

use countersign_api::event::EventKind;
use countersign_cluster::settings::SettingsError;
use countersign_core::values::{key::KeyError, path::PathError, shown::shown_text};
use countersign_forge::forges::{ForgeConfigError, TokenError};
use thiserror::Error;

use crate::events::webhooks::{ShortSecret, settings::WebhookNameError};

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
