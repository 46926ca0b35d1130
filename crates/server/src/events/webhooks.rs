//! Webhooks: the server sends events to the URLs that the operator configured.
//!
//! Each event is delivered at least once, in commit order, however long a receiver fails and however often the server
//! is killed. No request or change waits for a delivery: each webhook has its own task, which reads the commits and
//! stores its progress on disk.

pub(crate) mod courier;
pub mod progress;
pub mod settings;

use std::sync::Arc;

use countersign_cluster::{database::Database, webhooks::WebhookProgress};
use countersign_forge::fetch::Fetcher;
use countersign_store::{ObjectId, Store, machine::clock::Clock, machine::data_dir::DataDir};

pub use crate::events::webhooks::settings::{MIN_SECRET_BYTES, Secret};
use crate::events::webhooks::{
    courier::Courier, progress::Progress, settings::Webhook, settings::WebhookStats,
};
use crate::follow::background::{Background, BoxedError, HeldStore};

/// Webhooks whose progress was read, but whose tasks do not run yet.
#[derive(Debug)]
pub struct Webhooks(Vec<Ready>);

#[derive(Debug)]
struct Ready {
    webhook: Webhook,
    progress: Progress,
    turns: Option<WebhookProgress>,
    stats: Arc<WebhookStats>,
}

impl Webhooks {
    /// Reads the progress of each webhook. A new webhook begins at the newest commit, which is on disk when this
    /// returns, so it misses nothing from now on.
    ///
    /// Nodes keep it in their database, and one of them delivers.
    pub fn open(
        webhooks: Vec<Webhook>,
        data_dir: &DataDir,
        store: &Store,
        database: Option<&Database>,
    ) -> Result<Self, BoxedError> {
        let newest: ObjectId = store.head().commit;
        let dir = data_dir.webhooks();
        let opened = webhooks.into_iter().map(|webhook| {
            let turns =
                database.map(|database| WebhookProgress::new(database.clone(), webhook.name.as_str()));
            let progress = match turns {
                Some(_) => Progress::shared(newest),
                None => Progress::open(&dir, &webhook.name, newest)?,
            };
            let stats = Arc::new(WebhookStats::new(webhook.name.clone()));
            Ok(Ready { webhook, progress, turns, stats })
        });
        Ok(Self(opened.collect::<Result<_, BoxedError>>()?))
    }

    pub fn stats(&self) -> Vec<Arc<WebhookStats>> {
        self.0.iter().map(|ready| Arc::clone(&ready.stats)).collect()
    }

    /// Starts the task of each webhook.
    pub(crate) fn start(self, store: &Arc<HeldStore>, clock: &Clock, fetcher: &Fetcher) -> Vec<Background> {
        let start = |Ready { webhook, progress, turns, stats }| {
            let (store, clock, fetcher) = (Arc::clone(store), clock.clone(), fetcher.clone());
            let said = Default::default();
            Background::start(|stop| {
                Courier { webhook, progress, turns, stats, store, clock, fetcher, stop, said }.run()
            })
        };
        self.0.into_iter().map(start).collect()
    }
}
