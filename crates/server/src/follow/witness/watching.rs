//! The task of a witness: learns the key of the origin's log, has it replayed, and looks at what the origin shows
//! everyone. With `--poll` it also cosigns that, and posts the cosignature.

use std::{path::PathBuf, sync::Arc, time::Duration, time::Instant};

use countersign_core::log::note::{Note, NoteError};
use countersign_core::values::wire::routes::{LOG_CHECKPOINT, LOG_COSIGNATURE};
use countersign_forge::https::SetupError;
use countersign_log::{CosignRefusal, LogError, LogReplay, LogWitness, WitnessMemoryError};
use countersign_store::machine::clock::Clock;
use thiserror::Error;
use tokio::{sync::watch, task::spawn_blocking, time::sleep, time::timeout};

use crate::follow::background::{Attempt, Backoff, HeldStore, Retries, keep_trying};
use crate::follow::mirror::exchange::{OriginAddress, OriginClient, OriginError};
use crate::follow::witness::open::{WitnessSettings, unix_seconds};

/// The pause between two looks at the origin's checkpoint.
const PAUSE: Duration = Duration::from_secs(10);
/// The pause while a witness that polls waits for the first checkpoint, or for the next after a new commit.
const SHORT_PAUSE: Duration = Duration::from_secs(1);
const RETRIES: Retries = Retries { min: Duration::from_millis(500), max: Duration::from_secs(60) };
/// How long to wait until the mirror has come as far as a checkpoint.
const FOLLOWING: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct WatchParts {
    pub(crate) witness: Arc<LogWitness>,
    pub(crate) settings: WitnessSettings,
    pub(crate) origin: OriginAddress,
    pub(crate) store: Arc<HeldStore>,
    /// The directory for files that can be deleted.
    pub(crate) dir: PathBuf,
    pub(crate) clock: Clock,
}

#[derive(Debug)]
pub(crate) struct Watcher {
    parts: WatchParts,
    client: OriginClient,
    replay: Option<LogReplay>,
    /// The size of the checkpoint that was posted last.
    posted: Option<u64>,
}

#[derive(Debug, Error)]
pub(crate) enum WatchFailure {
    #[error(transparent)]
    Origin(#[from] OriginError),
    #[error("the key of the origin's log is the key of this witness: make a key of its own for it")]
    SharedKey,
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error(transparent)]
    Refused(#[from] CosignRefusal),
    #[error("the log cannot be replayed")]
    Log(#[from] LogError),
    #[error(transparent)]
    Memory(#[from] WitnessMemoryError),
}

impl Attempt for Watcher {
    type Failure = WatchFailure;

    async fn attempt(&mut self) -> Result<(), WatchFailure> {
        if let Some(replay) = &self.replay {
            replay.note_size(Instant::now());
        }
        self.look().await
    }

    fn report(&mut self, failure: &WatchFailure, was_failing: bool) {
        let origin = &self.parts.origin;
        if was_failing {
            tracing::debug!(%origin, %failure, "the witness still cannot use the origin's checkpoints");
        } else {
            tracing::warn!(%origin, %failure, "the witness cannot use the origin's checkpoints; it tries again");
        }
    }

    fn recover(&mut self) {
        tracing::info!(origin = %self.parts.origin, "the witness sees the origin's checkpoints again");
    }

    fn wait(&mut self, failure: &WatchFailure, backoff: &mut Backoff) -> Duration {
        let wait = backoff.wait(failure.asked_wait());
        // A log begins with nothing to see, and a poller should not miss its first checkpoint by a minute.
        if failure.is_young() { SHORT_PAUSE } else { wait }
    }

    /// Waits until the next look. A witness that polls looks earlier if there are new commits, which a checkpoint will
    /// cover.
    async fn rest(&mut self) {
        let Some(replay) = self.replay.as_ref().filter(|_| self.parts.settings.is_polling) else {
            return sleep(PAUSE).await;
        };
        let (mut sizes, posted) = (replay.sizes(), self.posted.unwrap_or(0));
        let news = async {
            let _ = sizes.wait_for(|size| *size > posted).await;
            sleep(SHORT_PAUSE).await;
        };
        let _ = timeout(PAUSE, news).await;
    }
}

impl Watcher {
    pub(crate) fn new(parts: WatchParts) -> Result<Self, SetupError> {
        let client = OriginClient::new(parts.origin.clone())?;
        Ok(Self { parts, client, replay: None, posted: None })
    }

    /// Works until the server stops.
    pub(crate) async fn run(self, stop: watch::Receiver<bool>) {
        let watcher = keep_trying(self, RETRIES, stop).await;
        if let Some(replay) = watcher.replay {
            let _ = spawn_blocking(move || replay.stop()).await;
        }
    }

    async fn look(&mut self) -> Result<(), WatchFailure> {
        let replay = match self.replay.clone() {
            Some(replay) => replay,
            None => self.begin().await?,
        };
        let note = Note::parse(&self.client.get(LOG_CHECKPOINT).await?)?;
        let (_, signed) = self.parts.witness.identify(&note)?;
        let size = signed.checkpoint().size;
        let _ = timeout(FOLLOWING, replay.sizes().wait_for(|replayed| *replayed >= size)).await;
        let (witness, now) = (Arc::clone(&self.parts.witness), unix_seconds(&self.parts.clock));
        if !self.parts.settings.is_polling {
            return Ok(in_background(move || witness.check(&note)).await?);
        }
        let cosigned = in_background(move || witness.cosign_replayed(&note, now)).await?;
        // With the log's own signature: a server that was restored learns from it what it had signed.
        self.client.post(LOG_COSIGNATURE, cosigned.note().to_string()).await?;
        self.posted = Some(size);
        Ok(())
    }

    /// The key that was given, seen before, or is seen now for the first time.
    async fn begin(&mut self) -> Result<LogReplay, WatchFailure> {
        let witness = &self.parts.witness;
        let pinned = witness.pinned_key()?;
        let key = match pinned.clone().or_else(|| self.parts.settings.log_key.clone()) {
            Some(key) => key,
            None => self.client.log_key().await?,
        };
        if key.key() == witness.key().key() {
            return Err(WatchFailure::SharedKey);
        }
        if pinned.is_none() {
            witness.pin_key(&key)?;
            tracing::info!(%key, origin = %self.parts.origin, "the witness follows the log with this key from now on");
        }
        let replay = LogReplay::start(&self.parts.store, &self.parts.dir, key)?;
        witness.add_replay(replay.clone())?;
        self.replay = Some(replay.clone());
        Ok(replay)
    }
}

impl WatchFailure {
    fn asked_wait(&self) -> Option<Duration> {
        match self {
            Self::Origin(error) => error.asked_wait(),
            Self::SharedKey | Self::Note(_) | Self::Refused(_) | Self::Log(_) | Self::Memory(_) => None,
        }
    }

    /// The origin has no checkpoint yet, or has made a newer one meanwhile.
    fn is_young(&self) -> bool {
        matches!(self, Self::Origin(error) if matches!(error.status(), Some(404 | 409 | 503)))
    }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CosignRefusal> + Send + 'static,
) -> Result<T, CosignRefusal> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(CosignRefusal::Signer(error.to_string())))
}
