//! The lists of logs that a witness reads, each from a file or from the network that publishes it (D272).

use std::{fmt, mem::take, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use countersign_core::log::network::LogList;
use countersign_core::values::{bounds::LOG_LIST_BYTES, shown::shown_text};
use countersign_forge::https::SetupError;
use countersign_log::{LogWitness, TakenList};
use countersign_store::machine::disk;
use tokio::{sync::watch, task::spawn_blocking, time::sleep, time::timeout};

use crate::follow::background::{Attempt, Backoff, Retries, keep_trying};
use crate::follow::outgoing::{ExchangeFailure, OutgoingClient, PageVersion, parse_guarded_url};

/// How often a list is read again. Networks ask for once an hour to once a day.
const EVERY: Duration = Duration::from_secs(60 * 60);
const RETRIES: Retries = Retries { min: Duration::from_secs(10), max: EVERY };
/// The pause before a witness looks again whether it knows its own log.
const OWN_LOG_PAUSE: Duration = Duration::from_millis(200);

/// Where a list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogListSource {
    File(PathBuf),
    Url(String),
}

impl FromStr for LogListSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains("://") {
            return Ok(Self::File(text.into()));
        }
        let url = parse_guarded_url(text);
        url.map(|url| Self::Url(url.into())).ok_or_else(|| {
            let shown = shown_text(text);
            format!("`{shown}` is not the address of a list: write it as https://HOST/PATH; http is for this machine only")
        })
    }
}

impl fmt::Display for LogListSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(url) => f.write_str(url),
        }
    }
}

/// Reads one list again and again. What is wrong with it changes nothing of what is known.
#[derive(Debug)]
pub(crate) struct ListReader {
    witness: Arc<LogWitness>,
    source: LogListSource,
    client: OutgoingClient,
    version: PageVersion,
    /// What was refused the last time. Only what differs is news.
    refused: TakenList,
    /// How long to wait before the next try.
    pause: Duration,
    /// The operator asks to read it now.
    asked: watch::Receiver<u64>,
}

impl ListReader {
    pub(crate) fn new(
        witness: Arc<LogWitness>,
        source: LogListSource,
        asked: watch::Receiver<u64>,
    ) -> Result<Self, SetupError> {
        let (client, version) = (OutgoingClient::new(LOG_LIST_BYTES)?, PageVersion::default());
        let (refused, pause) = (TakenList::default(), Duration::ZERO);
        Ok(Self { witness, source, client, version, refused, pause, asked })
    }

    /// Works until the server stops.
    pub(crate) async fn run(self, stop: watch::Receiver<bool>) {
        keep_trying(self, RETRIES, stop).await;
    }

    /// The list with its version, unless it still has the version that was taken.
    async fn read(&self) -> Result<Option<(Vec<u8>, PageVersion)>, ExchangeFailure> {
        let url = match &self.source {
            LogListSource::Url(url) => url,
            LogListSource::File(path) => {
                let path = path.clone();
                let read = spawn_blocking(move || disk::read(&path, LOG_LIST_BYTES as u64)).await?;
                let bytes = read?.ok_or_else(|| ExchangeFailure::new("the file is not there"))?;
                return Ok(Some((bytes, PageVersion::default())));
            }
        };
        let answer = self.client.get_newer(url, &self.version).await?;
        match answer.status {
            200 => Ok(Some((answer.body, answer.version))),
            304 => Ok(None),
            _ => Err(answer.refused("it was")),
        }
    }

    fn tell(&mut self, list: &LogList, taken: TakenList) {
        let source = &self.source;
        if taken.new > 0 {
            let (new, known) = (taken.new, self.witness.count_known());
            tracing::info!(%source, new, known, "the witness serves logs that are new on a list");
        }
        let refused = TakenList { new: 0, ..taken };
        if refused != self.refused {
            for untaken in &refused.named {
                let (log, reason) = (shown_text(&untaken.origin), &untaken.reason);
                tracing::warn!(%source, log, %reason, "the witness does not take a log from a list");
            }
            let (refused, named) = (refused.refused, refused.named.len());
            if refused > named {
                tracing::warn!(%source, refused, named, "the witness does not take more logs from a list");
            }
        }
        if let Some((line, reason)) = list.skipped.first().filter(|_| refused != self.refused) {
            let skipped = list.skipped.len();
            tracing::warn!(%source, skipped, line, %reason, "the witness cannot use some logs of a list");
        }
        self.refused = refused;
    }
}

impl Attempt for ListReader {
    type Failure = ExchangeFailure;

    async fn attempt(&mut self) -> Result<(), ExchangeFailure> {
        while !self.witness.has_own_log() {
            sleep(OWN_LOG_PAUSE).await;
        }
        let _ = timeout(take(&mut self.pause), self.asked.changed()).await;
        let Some((bytes, version)) = self.read().await? else { return Ok(()) };
        let witness = Arc::clone(&self.witness);
        let taken = spawn_blocking(move || -> Result<_, ExchangeFailure> {
            let list = LogList::parse(&bytes)?;
            let taken = witness.take_list(&list)?;
            Ok((list, taken))
        });
        let (list, taken) = taken.await??;
        self.tell(&list, taken);
        self.version = version;
        Ok(())
    }

    fn report(&mut self, failure: &ExchangeFailure, was_failing: bool) {
        let source = &self.source;
        if was_failing {
            tracing::debug!(%source, %failure, "the witness still cannot use a list of logs");
        } else {
            tracing::warn!(%source, %failure, "the witness cannot use a list of logs; it serves those that it knows");
        }
    }

    fn recover(&mut self) {
        tracing::info!(source = %self.source, "the witness can use the list of logs again");
    }

    fn wait(&mut self, failure: &ExchangeFailure, backoff: &mut Backoff) -> Duration {
        // The next try waits itself, because the operator can ask for it earlier.
        self.pause = backoff.wait(failure.asked_wait);
        Duration::ZERO
    }

    async fn rest(&mut self) {
        self.pause = EVERY;
    }
}
