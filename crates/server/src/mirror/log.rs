//! A mirror's copy of its origin's log (D118), so that it can prove the newest state of a release as the origin does.

use std::{path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use countersign_core::{
    log::{
        checkpoint::{CheckpointError, SignedCheckpoint},
        note::Note,
    },
    values::{
        verifier_key::{KeyKind, VerifierKey},
        wire::routes::LOG_COSIGNED,
    },
};
use countersign_forge::https::SetupError;
use countersign_log::{LogCopy, LogError};
use countersign_store::durable;
use thiserror::Error;
use tokio::{sync::watch, task::spawn_blocking, time::sleep};

use super::{
    client::{OriginClient, OriginError},
    state::MirrorState,
};
use crate::{
    backoff::{Backoff, Retries, chance},
    held_store::HeldStore,
    log_slot::LogSlot,
};

/// Between two looks at the origin's checkpoint.
const PAUSE: Duration = Duration::from_secs(2);
/// For an origin that keeps no log. It can get one.
const NO_LOG_PAUSE: Duration = Duration::from_secs(60);
const RETRIES: Retries = Retries { min: Duration::from_millis(500), max: Duration::from_secs(30) };
const KEY_BYTES: u64 = 1_024;

pub(crate) type CopyWork = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Debug)]
pub(crate) struct CopyParts {
    pub(crate) mirror: Arc<MirrorState>,
    pub(crate) store: Arc<HeldStore>,
    pub(crate) slot: LogSlot,
}

/// Works until it is told to stop.
pub(crate) fn copy_log(
    parts: CopyParts,
) -> Result<impl FnOnce(watch::Receiver<bool>) -> CopyWork, SetupError> {
    let copier = Copier {
        dir: parts.store.data_dir.log_copy(),
        client: OriginClient::new(parts.mirror.origin.clone())?,
        parts,
        copy: None,
    };
    Ok(|mut stop: watch::Receiver<bool>| {
        Box::pin(async move {
            tokio::select! {
                () = copier.run() => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }) as CopyWork
    })
}

#[derive(Debug)]
struct Copier {
    parts: CopyParts,
    dir: PathBuf,
    client: OriginClient,
    copy: Option<LogCopy>,
}

#[derive(Debug, Error)]
enum CopyFailure {
    #[error(transparent)]
    Origin(#[from] OriginError),
    #[error(
        "what the origin shows is not a checkpoint of the log {key}: {source}. If the origin has a new log, stop the mirror and \
         delete {dir}"
    )]
    Checkpoint { key: VerifierKey, source: CheckpointError, dir: String },
    #[error("the log cannot be derived")]
    Log(#[from] LogError),
    #[error("the directory {0} cannot be used")]
    Dir(String, #[source] std::io::Error),
}

impl CopyFailure {
    /// The origin keeps no log.
    fn is_absence(&self) -> bool {
        matches!(self, Self::Origin(error) if error.status() == Some(404))
    }

    fn asked_wait(&self) -> Option<Duration> {
        match self {
            Self::Origin(error) => error.asked_wait(),
            Self::Checkpoint { .. } | Self::Log(_) | Self::Dir(..) => None,
        }
    }
}

impl Copier {
    async fn run(mut self) {
        let (mut backoff, mut is_failing) = (Backoff::new(RETRIES), false);
        loop {
            let pause = match self.look().await {
                Ok(()) => {
                    backoff = Backoff::new(RETRIES);
                    if std::mem::take(&mut is_failing) {
                        tracing::info!(origin = %self.parts.mirror.origin, "the mirror sees the origin's checkpoints again");
                    }
                    PAUSE
                }
                Err(failure) if failure.is_absence() => NO_LOG_PAUSE,
                Err(failure) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        let (origin, cause) =
                            (&self.parts.mirror.origin, std::error::Error::source(&failure));
                        tracing::warn!(%origin, %failure, cause, "the mirror cannot copy the origin's log; it tries again");
                    }
                    backoff.next_wait(chance(), failure.asked_wait())
                }
            };
            sleep(pause).await;
        }
    }

    async fn look(&mut self) -> Result<(), CopyFailure> {
        let copy = match self.copy.clone() {
            Some(copy) => copy,
            None => match self.find_key().await? {
                Some(key) => self.begin(key).await?,
                None => return Ok(()),
            },
        };
        if !self.parts.mirror.is_in_contact() {
            return Ok(());
        }
        let body = self.client.get(LOG_COSIGNED).await?;
        let key = copy.log.key();
        let opened = Note::parse(&body)
            .map_err(CheckpointError::from)
            .and_then(|note| SignedCheckpoint::open(&note, std::slice::from_ref(key), &[]));
        opened.map_err(|source| CopyFailure::Checkpoint {
            key: key.clone(),
            source,
            dir: self.dir.display().to_string(),
        })?;
        copy.offer(body);
        Ok(())
    }

    /// The one that was seen before, or is seen now for the first time.
    async fn find_key(&self) -> Result<Option<VerifierKey>, CopyFailure> {
        let pinned = durable::read_text(&self.key_file(), KEY_BYTES).map_err(|error| self.unusable(error))?;
        match pinned {
            Some(text) => {
                let key = VerifierKey::parse_kind(text.trim(), KeyKind::Log);
                Ok(Some(key.map_err(OriginError::Key)?))
            }
            None if self.parts.mirror.is_in_contact() => Ok(Some(self.client.log_key().await?)),
            None => Ok(None),
        }
    }

    async fn begin(&mut self, key: VerifierKey) -> Result<LogCopy, CopyFailure> {
        let (store, dir, file, own) =
            (Arc::clone(&self.parts.store), self.dir.clone(), self.key_file(), key.clone());
        let started = spawn_blocking(move || {
            std::fs::create_dir_all(&dir)?;
            durable::replace(&file, &format!("{own}\n"))?;
            Ok(LogCopy::start(&store, &dir, own))
        });
        let started = started.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let copy = started.map_err(|error| self.unusable(error))??;
        tracing::info!(%key, origin = %self.parts.mirror.origin, "the mirror copies the log with this key");
        self.parts.slot.set(Arc::clone(&copy.log));
        self.copy = Some(copy.clone());
        Ok(copy)
    }

    fn key_file(&self) -> PathBuf {
        self.dir.join("key")
    }

    fn unusable(&self, error: std::io::Error) -> CopyFailure {
        CopyFailure::Dir(self.dir.display().to_string(), error)
    }
}
