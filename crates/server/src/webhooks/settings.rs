//! One webhook, as the operator configured it.

use std::{fmt, time::Duration};

use countersign_api::event::EventFilter;
use thiserror::Error;
use url::Url;

use super::secret::Secret;
use crate::background::Retries;

const MAX_NAME_BYTES: usize = 64;

#[derive(Debug, Clone)]
pub struct Webhook {
    pub name: WebhookName,
    pub url: Url,
    pub secret: Secret,
    /// An event is sent if one of them lets it pass.
    pub filters: Vec<EventFilter>,
    pub retries: Retries,
    /// For one try.
    pub timeout: Duration,
}

/// Names a file and labels a metric, so it is plain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookName(String);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "a name is 1 to {MAX_NAME_BYTES} small letters, digits, `-` and `_`, and begins with a letter or digit"
)]
pub struct WebhookNameError;

impl WebhookName {
    pub fn parse(text: &str) -> Result<Self, WebhookNameError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let begins_well = text.bytes().next().is_some_and(is_plain);
        let goes_on_well = text.bytes().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'_'));
        if begins_well && goes_on_well && text.len() <= MAX_NAME_BYTES {
            Ok(Self(text.to_owned()))
        } else {
            Err(WebhookNameError)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WebhookName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
