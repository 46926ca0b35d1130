//! The `[[webhook]]` tables.

use std::{collections::BTreeSet, fmt, path::PathBuf, time::Duration};

use countersign_api::event::{EventFilter, EventKind};
use countersign_core::values::{key::PublicKey, path::RepoPath};
use countersign_forge::url::{HttpUrlProblem, parse_http_url};
use serde::Deserialize;
use url::Url;

use crate::events::webhooks::{Secret, settings::Webhook, settings::WebhookName};
use crate::follow::background::Retries;
use crate::operate::config::source::{ConfigError, MAX_SECONDS, WebhookProblem};

const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookTable {
    name: String,
    url: String,
    secret: Option<SecretText>,
    secret_file: Option<PathBuf>,
    prefix: Option<Vec<String>>,
    types: Option<Vec<String>>,
    key: Option<String>,
    timeout_seconds: Option<u64>,
    retry_min_seconds: Option<u64>,
    retry_max_seconds: Option<u64>,
}

/// A secret as the file has it. Errors never show it, not even a value of the wrong type.
#[derive(Clone)]
struct SecretText(String);

/// Reads all webhooks, whose names must differ.
pub(crate) fn resolve(tables: Vec<WebhookTable>) -> Result<Vec<Webhook>, ConfigError> {
    let mut names = BTreeSet::new();
    let webhooks = tables.into_iter().map(|table| {
        let name = table.name.clone();
        let webhook = table.resolve().and_then(|webhook| {
            if names.insert(webhook.name.clone()) { Ok(webhook) } else { Err(WebhookProblem::SameName) }
        });
        webhook.map_err(|problem| ConfigError::Webhook { name, problem })
    });
    webhooks.collect()
}

impl WebhookTable {
    fn resolve(self) -> Result<Webhook, WebhookProblem> {
        Ok(Webhook {
            name: WebhookName::parse(&self.name)?,
            url: parse_url(&self.url)?,
            filters: self.filters()?,
            retries: self.retries()?,
            timeout: seconds("timeout_seconds", self.timeout_seconds, TIMEOUT)?,
            secret: read_secret(self.secret, self.secret_file)?,
        })
    }

    /// One for each prefix.
    fn filters(&self) -> Result<Vec<EventFilter>, WebhookProblem> {
        let kinds = self.types.as_ref().map(|names| {
            let parse = |name: &String| {
                EventKind::parse(name).map_err(|_| WebhookProblem::Type { given: name.clone() })
            };
            names.iter().map(parse).collect::<Result<BTreeSet<_>, _>>()
        });
        let kinds = kinds.transpose()?;
        if kinds.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(WebhookProblem::Nothing { key: "types" });
        }
        let key = self.key.as_deref().map(PublicKey::parse).transpose()?;
        let filter = |prefix| EventFilter { prefix, kinds: kinds.clone(), key };
        let Some(prefixes) = &self.prefix else { return Ok(vec![filter(None)]) };
        if prefixes.is_empty() {
            return Err(WebhookProblem::Nothing { key: "prefix" });
        }
        let parse = |given: &String| match RepoPath::parse(given) {
            Ok(prefix) => Ok(filter(Some(prefix))),
            Err(source) => Err(WebhookProblem::Prefix { given: given.clone(), source }),
        };
        prefixes.iter().map(parse).collect()
    }

    fn retries(&self) -> Result<Retries, WebhookProblem> {
        let default = Retries::default();
        let min = seconds("retry_min_seconds", self.retry_min_seconds, default.min)?;
        let max = seconds("retry_max_seconds", self.retry_max_seconds, default.max.max(min))?;
        if max < min { Err(WebhookProblem::Retries) } else { Ok(Retries { min, max }) }
    }
}

/// Errors do not quote the text: it could hold a token.
fn parse_url(text: &str) -> Result<Url, WebhookProblem> {
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        let reason = "has whitespace, a control character or a backslash: remove it";
        return Err(WebhookProblem::Url(reason.to_owned()));
    }
    parse_http_url(text).map_err(|problem| {
        WebhookProblem::Url(match problem {
            HttpUrlProblem::UserInfo => format!("{problem}; the secret tells the receiver who sends"),
            HttpUrlProblem::NotAUrl | HttpUrlProblem::NotHttp | HttpUrlProblem::Fragment => {
                problem.to_string()
            }
        })
    })
}

fn read_secret(secret: Option<SecretText>, file: Option<PathBuf>) -> Result<Secret, WebhookProblem> {
    let secret = match (secret, file) {
        (Some(SecretText(secret)), None) => secret,
        (None, Some(path)) => match std::fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(source) => return Err(WebhookProblem::SecretFile { path, source }),
        },
        (None, None) => return Err(WebhookProblem::NoSecret),
        (Some(_), Some(_)) => return Err(WebhookProblem::TwoSecrets),
    };
    Ok(Secret::new(secret.as_bytes())?)
}

fn seconds(key: &'static str, value: Option<u64>, default: Duration) -> Result<Duration, WebhookProblem> {
    match value {
        Some(seconds @ 1..=MAX_SECONDS) => Ok(Duration::from_secs(seconds)),
        Some(_) => Err(WebhookProblem::Time { key }),
        None => Ok(default),
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(Self(text)),
            _ => Err(serde::de::Error::custom("`secret` is not a string")),
        }
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}
