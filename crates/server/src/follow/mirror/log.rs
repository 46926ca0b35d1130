//! A mirror's copy of its origin's log (D118), so that it can prove the newest state of a release as the origin does.

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_core::log::{checkpoint::CheckpointError, checkpoint::SignedCheckpoint, note::Note};
use countersign_core::values::{verifier_key::VerifierKey, wire::routes::LOG_COSIGNED};
use countersign_forge::https::SetupError;
use countersign_log::LogCopy;
use countersign_store::machine::disk;
use tokio::{sync::watch, task::spawn_blocking, time::sleep};

use crate::follow::background::{Attempt, Backoff, HeldStore, LogSlot, Retries, keep_trying};
use crate::follow::mirror::{exchange::OriginClient, exchange::parse_log_key, state::MirrorState};
use crate::follow::outgoing::ExchangeFailure;

/// The pause between two looks at the origin's checkpoint.
const PAUSE: Duration = Duration::from_secs(2);
/// The pause before a mirror asks again an origin that keeps no log. The origin can get one.
const NO_LOG_PAUSE: Duration = Duration::from_secs(60);
const RETRIES: Retries = Retries { min: Duration::from_millis(500), max: Duration::from_secs(30) };
const KEY_BYTES: u64 = 1_024;

#[derive(Debug)]
pub(crate) struct LogCopier {
    mirror: Arc<MirrorState>,
    store: Arc<HeldStore>,
    slot: LogSlot,
    dir: PathBuf,
    client: OriginClient,
    copy: Option<LogCopy>,
}

impl Attempt for LogCopier {
    type Failure = ExchangeFailure;

    async fn attempt(&mut self) -> Result<(), ExchangeFailure> {
        self.look().await
    }

    fn report(&mut self, failure: &ExchangeFailure, was_failing: bool) {
        if !was_failing {
            let origin = &self.mirror.origin;
            tracing::warn!(%origin, %failure, "the mirror cannot copy the origin's log; it tries again");
        }
    }

    fn recover(&mut self) {
        tracing::info!(origin = %self.mirror.origin, "the mirror sees the origin's checkpoints again");
    }

    fn wait(&mut self, failure: &ExchangeFailure, backoff: &mut Backoff) -> Duration {
        if self.is_expected(failure) { NO_LOG_PAUSE } else { backoff.wait(failure.asked_wait) }
    }

    /// The origin keeps no log.
    fn is_expected(&self, failure: &ExchangeFailure) -> bool {
        failure.status == Some(404)
    }

    async fn rest(&mut self) {
        sleep(PAUSE).await;
    }
}

impl LogCopier {
    pub(crate) fn new(
        mirror: Arc<MirrorState>,
        store: Arc<HeldStore>,
        slot: LogSlot,
    ) -> Result<Self, SetupError> {
        let client = OriginClient::new(mirror.origin.clone())?;
        Ok(Self { dir: store.data_dir.log_copy(), mirror, store, slot, client, copy: None })
    }

    /// Works until the server stops.
    pub(crate) async fn run(self, stop: watch::Receiver<bool>) {
        keep_trying(self, RETRIES, stop).await;
    }

    async fn look(&mut self) -> Result<(), ExchangeFailure> {
        let copy = match self.copy.clone() {
            Some(copy) => copy,
            None => match self.find_key().await? {
                Some(key) => self.begin(key).await?,
                None => return Ok(()),
            },
        };
        if !self.mirror.is_in_contact() {
            return Ok(());
        }
        let body = self.client.get(LOG_COSIGNED).await?;
        let key = copy.log.key();
        let opened = Note::parse(&body)
            .map_err(CheckpointError::from)
            .and_then(|note| SignedCheckpoint::open(&note, std::slice::from_ref(key), &[]));
        opened.map_err(|error| {
            let dir = self.dir.display();
            ExchangeFailure::new(format!(
                "what the origin shows is not a checkpoint of the log {key}: {error}. If the origin has a new log, stop the mirror \
                 and delete {dir}"
            ))
        })?;
        copy.offer(body);
        Ok(())
    }

    /// The one that was seen before, or is seen now for the first time.
    async fn find_key(&self) -> Result<Option<VerifierKey>, ExchangeFailure> {
        let pinned = disk::read_text(&self.key_file(), KEY_BYTES).map_err(|error| self.unusable(&error))?;
        match pinned {
            Some(text) => parse_log_key(&text).map(Some),
            None if self.mirror.is_in_contact() => Ok(Some(self.client.log_key().await?)),
            None => Ok(None),
        }
    }

    async fn begin(&mut self, key: VerifierKey) -> Result<LogCopy, ExchangeFailure> {
        let (store, dir, file, own) =
            (Arc::clone(&self.store), self.dir.clone(), self.key_file(), key.clone());
        let started = spawn_blocking(move || {
            std::fs::create_dir_all(&dir)?;
            disk::replace(&file, &format!("{own}\n"))?;
            Ok(LogCopy::start(&store, &dir, own))
        });
        let started = started.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let copy = started.map_err(|error| self.unusable(&error))?;
        let copy = copy.map_err(|error| ExchangeFailure::caused("the log cannot be derived", &error))?;
        tracing::info!(%key, origin = %self.mirror.origin, "the mirror copies the log with this key");
        // Only the first log counts.
        let _ = self.slot.set(Arc::clone(&copy.log));
        self.copy = Some(copy.clone());
        Ok(copy)
    }

    fn key_file(&self) -> PathBuf {
        self.dir.join("key")
    }

    fn unusable(&self, error: &std::io::Error) -> ExchangeFailure {
        ExchangeFailure::caused(&format!("the directory {} cannot be used", self.dir.display()), error)
    }
}
