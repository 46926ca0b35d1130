//! Webhooks: events are sent to the URLs that the operator configured.
//!
//! Each event is delivered at least once, in the order of the commits, however long a receiver fails and however often
//! the server is killed. No request and no change waits for it: each webhook has a task of its own, which reads the
//! commits behind their backs and keeps on disk how far it came.

mod backoff;
mod commits;
mod courier;
mod progress;
mod secret;
mod stats;

use std::{fmt, sync::Arc, time::Duration};

use countersign_api::event::EventFilter;
use countersign_forge::fetch::Fetcher;
use thiserror::Error;
use tokio::sync::watch;
use url::Url;

pub use self::{
    backoff::Retries,
    progress::ProgressError,
    secret::{MIN_SECRET_BYTES, Secret, ShortSecret},
    stats::{Outcome, WebhookStats},
};
use self::{courier::Courier, progress::ProgressFile};
use crate::app::App;
use countersign_store::{ObjectId, Store, data_dir::DataDir};

const MAX_NAME_BYTES: usize = 64;

/// One webhook, as the operator configured it.
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

/// Names a file and a label of a metric, so it is plain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookName(String);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "a name is 1 to {MAX_NAME_BYTES} small letters, digits, `-` and `_`, and begins with a letter or digit"
)]
pub struct WebhookNameError;

/// Webhooks whose progress was read, and that are not at work yet.
#[derive(Debug)]
pub struct Webhooks(Vec<Ready>);

#[derive(Debug)]
struct Ready {
    webhook: Webhook,
    progress: ProgressFile,
    stats: Arc<WebhookStats>,
}

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

impl Webhooks {
    /// Reads how far each webhook came. A new one begins at the newest commit, which is on disk when this returns: it
    /// misses nothing that happens from now on.
    pub fn open(webhooks: Vec<Webhook>, data_dir: &DataDir, store: &Store) -> Result<Self, ProgressError> {
        let newest: ObjectId = store.head().commit;
        let dir = data_dir.webhooks();
        let opened = webhooks.into_iter().map(|webhook| {
            let progress = ProgressFile::open(&dir, &webhook.name, newest)?;
            let stats = Arc::new(WebhookStats::new(webhook.name.clone()));
            Ok(Ready { webhook, progress, stats })
        });
        Ok(Self(opened.collect::<Result<_, _>>()?))
    }

    pub fn stats(&self) -> Vec<Arc<WebhookStats>> {
        self.0.iter().map(|ready| Arc::clone(&ready.stats)).collect()
    }

    /// The work of each, which ends when it is told to stop.
    pub fn work(
        self,
        app: &App,
        fetcher: &Fetcher,
    ) -> impl Iterator<Item = impl FnOnce(watch::Receiver<bool>) -> courier::Work> {
        let (app, fetcher) = (app.clone(), fetcher.clone());
        self.0.into_iter().map(move |Ready { webhook, progress, stats }| {
            let (app, fetcher) = (app.clone(), fetcher.clone());
            move |stop| {
                let said = Default::default();
                Courier { webhook, progress, stats, app, fetcher, stop, said }.start()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_enough_for_a_file_and_a_label() {
        for name in ["ci", "chat-2", "0_x", &"a".repeat(64)] {
            assert!(WebhookName::parse(name).is_ok(), "{name}");
        }
        for name in ["", "CI", "-a", "a.b", "a/b", "a b", "a\"", "é", &"a".repeat(65)] {
            assert!(WebhookName::parse(name).is_err(), "{name}");
        }
    }
}
