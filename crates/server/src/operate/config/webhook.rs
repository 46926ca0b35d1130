//! The `[[webhook]]` tables.

use std::{collections::BTreeSet, fmt, path::PathBuf, time::Duration};

use countersign_api::event::{EventFilter, EventKind};
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::shown_text};
use countersign_forge::url::{HttpUrlProblem, parse_http_url};
use serde::Deserialize;
use url::Url;

use crate::events::webhooks::{Secret, settings::Webhook, settings::WebhookName};
use crate::follow::background::{BoxedError, Retries};
use crate::operate::config::source::{ConfigError, MAX_SECONDS};

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
            let same = "another one has the same name: each keeps its progress under its own";
            if names.insert(webhook.name.clone()) { Ok(webhook) } else { Err(same.into()) }
        });
        webhook.map_err(|problem| {
            let text = format!("the webhook `{}` in the configuration file: {problem}", shown_text(&name));
            ConfigError::new(text).at("webhook", "name", Some(&name))
        })
    });
    webhooks.collect()
}

impl WebhookTable {
    fn resolve(self) -> Result<Webhook, BoxedError> {
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
    fn filters(&self) -> Result<Vec<EventFilter>, BoxedError> {
        let kinds = self.types.as_ref().map(|names| {
            let parse = |name: &String| {
                let known = || EventKind::ALL.map(EventKind::name).join(", ");
                EventKind::parse(name).map_err(|_| {
                    format!("`{}` is not a type of event: the types are {}", shown_text(name), known())
                })
            };
            names.iter().map(parse).collect::<Result<BTreeSet<_>, _>>()
        });
        let kinds = kinds.transpose()?;
        if kinds.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(nothing("types").into());
        }
        let key = self.key.as_deref().map(PublicKey::parse).transpose();
        let key = key.map_err(|error| format!("its key: {error}"))?;
        let filter = |prefix| EventFilter { prefix, kinds: kinds.clone(), key };
        let Some(prefixes) = &self.prefix else { return Ok(vec![filter(None)]) };
        if prefixes.is_empty() {
            return Err(nothing("prefix").into());
        }
        let parse = |given: &String| match RepoPath::parse(given) {
            Ok(prefix) => Ok(filter(Some(prefix))),
            Err(error) => Err(format!("its prefix `{}`: {error}", shown_text(given)).into()),
        };
        prefixes.iter().map(parse).collect()
    }

    fn retries(&self) -> Result<Retries, BoxedError> {
        let default = Retries::default();
        let min = seconds("retry_min_seconds", self.retry_min_seconds, default.min)?;
        let max = seconds("retry_max_seconds", self.retry_max_seconds, default.max.max(min))?;
        if max < min {
            return Err("`retry_max_seconds` is less than `retry_min_seconds`".into());
        }
        Ok(Retries { min, max })
    }
}

fn nothing(key: &str) -> String {
    format!("`{key}` is empty, so nothing would be sent. Leave it out to send everything")
}

/// Reads the URL. Errors do not quote the text: it could hold a token.
fn parse_url(text: &str) -> Result<Url, BoxedError> {
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("its url has whitespace, a control character or a backslash: remove it".into());
    }
    Ok(parse_http_url(text).map_err(|problem| match problem {
        HttpUrlProblem::UserInfo => format!("its url {problem}; the secret tells the receiver who sends"),
        HttpUrlProblem::NotAUrl | HttpUrlProblem::NotHttp | HttpUrlProblem::Fragment => {
            format!("its url {problem}")
        }
    })?)
}

fn read_secret(secret: Option<SecretText>, file: Option<PathBuf>) -> Result<Secret, BoxedError> {
    let secret = match (secret, file) {
        (Some(SecretText(secret)), None) => secret,
        (None, Some(path)) => match std::fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) => {
                return Err(format!("cannot read its secret file {}: {error}", path.display()).into());
            }
        },
        (None, None) => return Err("it has no secret: set `secret`, or `secret_file`".into()),
        (Some(_), Some(_)) => return Err("it has both `secret` and `secret_file`: leave one out".into()),
    };
    Ok(Secret::new(secret.as_bytes())?)
}

fn seconds(key: &str, value: Option<u64>, default: Duration) -> Result<Duration, BoxedError> {
    match value {
        Some(seconds @ 1..=MAX_SECONDS) => Ok(Duration::from_secs(seconds)),
        Some(_) => Err(format!("`{key}` must be from 1 to {MAX_SECONDS}").into()),
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
