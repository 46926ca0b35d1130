//! A mirror that also cosigns the checkpoints of its origin's log, and of other logs (D94–D96): its settings, its
//! records in the data directory, one request to cosign, and the task that looks at what the origin shows everyone.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use countersign_core::log::checkpoint::{Cosignature, WitnessRequest};
use countersign_core::log::note::Note;
use countersign_core::values::verifier_key::VerifierKey;
use countersign_core::values::wire::routes::{LOG_CHECKPOINT, LOG_COSIGNATURE};
use countersign_forge::https::SetupError;
use countersign_log::{CheckpointSigner, CosignRefusal, LogReplay, LogWitness};
use countersign_store::machine::clock::Clock;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio::{sync::watch, task::spawn_blocking};

use crate::follow::background::{Attempt, Backoff, BoxedError, HeldStore, Retries, keep_trying};
use crate::follow::mirror::exchange::{OriginAddress, OriginClient};
use crate::follow::{mirror::MirrorState, network::LogListSource, outgoing::ExchangeFailure};

// The settings of a witness: its key, the logs that it cosigns, and whether it asks or is asked.

#[derive(Debug, Clone)]
pub struct WitnessSettings {
    /// One for each key of the witness.
    pub signers: Vec<CheckpointSigner>,
    /// The key of the origin's log. `None` takes the key that the origin shows the first time.
    pub log_key: Option<VerifierKey>,
    /// Logs to serve as an ordinary witness.
    pub logs: Vec<VerifierKey>,
    /// Lists of more of them.
    pub lists: Vec<LogListSource>,
    /// Whether the witness fetches checkpoints and posts cosignatures, instead of being asked.
    pub is_polling: bool,
}

/// Opens the witness's records. `dir` is the witness's own, below the data directory.
pub(crate) fn open(dir: &Path, settings: &WitnessSettings) -> Result<Arc<LogWitness>, BoxedError> {
    let witness = LogWitness::open(dir, settings.signers.clone())?;
    let mut known = settings.logs.iter().chain(&settings.log_key);
    if let Some(shared) = known.find(|key| witness.has_key_of(key)) {
        let log = shared.name();
        return Err(format!(
            "the key of this witness is also the key of the log {log}: make a key of its own for it"
        )
        .into());
    }
    let pinned = witness.pinned_key()?;
    if let (Some(pinned), Some(given)) = (&pinned, &settings.log_key)
        && pinned != given
    {
        return Err(format!(
            "this witness has followed a log with the key {pinned}, and now gets the key {given}. A log with another key is \
             another log: choose an empty data directory"
        )
        .into());
    }
    let mut by_origin: BTreeMap<&str, Vec<VerifierKey>> = BTreeMap::new();
    for key in &settings.logs {
        by_origin.entry(key.name()).or_default().push(key.clone());
    }
    for keys in by_origin.into_values() {
        witness.add_log(keys)?;
    }
    let own_key = pinned.or_else(|| settings.log_key.clone());
    if let Some(key) = &own_key {
        witness.expect_replay(key)?;
    }
    let listed = witness.add_known()?;
    if own_key.is_none() && settings.logs.is_empty() && listed == 0 {
        witness.expect_key();
    }
    for stop in witness.stops() {
        let countersign_log::WitnessStop { origin, reason, evidence } = stop;
        tracing::error!(
            log = origin,
            reason,
            evidence,
            "this witness cosigns nothing of a log that has forked"
        );
    }
    for key in witness.keys() {
        tracing::info!(%key, "this is a witness");
    }
    Ok(Arc::new(witness))
}

// One request to cosign.

/// How long a request waits for the mirror to come as far as its checkpoint.
const ASKED_FOLLOWING: Duration = Duration::from_secs(5);
/// The pause between two looks whether the log is being replayed.
const BEGINNING: Duration = Duration::from_millis(20);
/// The pause between two looks whether the mirror has stopped.
const LOOK: Duration = Duration::from_millis(250);

/// Cosigns when the mirror has come as far as the checkpoint. The log asks as soon as it has signed, and the mirror
/// hears of commits at the same time. A mirror that has stopped never comes so far, and the log is told so (D210).
pub(crate) async fn cosign(
    witness: &Arc<LogWitness>,
    request: WitnessRequest,
    clock: &Clock,
    mirror: Option<&MirrorState>,
) -> Result<Vec<Cosignature>, CosignRefusal> {
    let request = Arc::new(request);
    let deadline = Instant::now() + ASKED_FOLLOWING;
    loop {
        let (witness_here, request_here) = (Arc::clone(witness), Arc::clone(&request));
        let now = unix_seconds(clock);
        let cosigned = in_background(move || witness_here.add_checkpoint(&request_here, now)).await;
        let Err(CosignRefusal::NotReplayed { size, .. }) = cosigned else { return cosigned };
        if let Some(refusal) = mirror.and_then(MirrorState::refusal) {
            let reason = format!("it has stopped following the journal: {}", refusal.reason);
            return Err(CosignRefusal::Stopped(reason));
        }
        let (log, _) = witness.identify(&request.note)?;
        let Some(replay) = log.replay() else {
            if Instant::now() >= deadline {
                return cosigned;
            }
            // It begins soon after the start.
            sleep(BEGINNING).await;
            continue;
        };
        let mut sizes = replay.log().sizes();
        let look = deadline.min(Instant::now() + LOOK);
        let _ = timeout_at(look, sizes.wait_for(|replayed| *replayed >= size)).await;
        if *sizes.borrow() < size && Instant::now() >= deadline {
            return cosigned;
        }
    }
}

fn unix_seconds(clock: &Clock) -> u64 {
    u64::try_from(clock.now().unix_seconds()).unwrap_or(1)
}

// The task of a witness. It learns the key of the origin's log, has the log replayed, and looks at what the origin
// shows everyone. With `--poll` it also cosigns that, and posts the cosignature.

/// The pause between two looks at the origin's checkpoint.
const PAUSE: Duration = Duration::from_secs(10);
/// The pause while a witness that polls waits for the first checkpoint, or for the next after a new commit.
const SHORT_PAUSE: Duration = Duration::from_secs(1);
const RETRIES: Retries = Retries { min: Duration::from_millis(500), max: Duration::from_secs(60) };
/// How long to wait until the mirror has come as far as a checkpoint.
const FOLLOWING: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Watcher {
    witness: Arc<LogWitness>,
    settings: WitnessSettings,
    origin: OriginAddress,
    store: Arc<HeldStore>,
    clock: Clock,
    client: OriginClient,
    replay: Option<LogReplay>,
    /// The size of the checkpoint that was posted last.
    posted: Option<u64>,
}

impl Attempt for Watcher {
    type Failure = ExchangeFailure;

    async fn attempt(&mut self) -> Result<(), ExchangeFailure> {
        if let Some(replay) = &self.replay {
            replay.note_size(std::time::Instant::now());
        }
        self.look().await
    }

    fn report(&mut self, failure: &ExchangeFailure, was_failing: bool) {
        let origin = &self.origin;
        if was_failing {
            tracing::debug!(%origin, %failure, "the witness still cannot use the origin's checkpoints");
        } else {
            tracing::warn!(%origin, %failure, "the witness cannot use the origin's checkpoints; it tries again");
        }
    }

    fn recover(&mut self) {
        tracing::info!(origin = %self.origin, "the witness sees the origin's checkpoints again");
    }

    fn wait(&mut self, failure: &ExchangeFailure, backoff: &mut Backoff) -> Duration {
        let wait = backoff.wait(failure.asked_wait);
        // The origin has no checkpoint yet, or has made a newer one meanwhile. A log begins with nothing to see, and a
        // poller should not miss its first checkpoint by a minute.
        if matches!(failure.status, Some(404 | 409 | 503)) { SHORT_PAUSE } else { wait }
    }

    /// Waits until the next look. A witness that polls looks earlier if there are new commits, which a checkpoint will
    /// cover.
    async fn rest(&mut self) {
        let Some(replay) = self.replay.as_ref().filter(|_| self.settings.is_polling) else {
            return sleep(PAUSE).await;
        };
        let (mut sizes, posted) = (replay.log().sizes(), self.posted.unwrap_or(0));
        let news = async {
            let _ = sizes.wait_for(|size| *size > posted).await;
            sleep(SHORT_PAUSE).await;
        };
        let _ = timeout(PAUSE, news).await;
    }
}

impl Watcher {
    pub(crate) fn new(
        witness: Arc<LogWitness>,
        settings: WitnessSettings,
        origin: OriginAddress,
        store: Arc<HeldStore>,
        clock: Clock,
    ) -> Result<Self, SetupError> {
        let client = OriginClient::new(origin.clone())?;
        Ok(Self { witness, settings, origin, store, clock, client, replay: None, posted: None })
    }

    /// Works until the server stops.
    pub(crate) async fn run(self, stop: watch::Receiver<bool>) {
        let watcher = keep_trying(self, RETRIES, stop).await;
        if let Some(replay) = watcher.replay {
            let _ = spawn_blocking(move || replay.log().stop()).await;
        }
    }

    async fn look(&mut self) -> Result<(), ExchangeFailure> {
        let replay = match self.replay.clone() {
            Some(replay) => replay,
            None => self.begin().await?,
        };
        let note = Note::parse(&self.client.get(LOG_CHECKPOINT).await?)?;
        let (_, signed) = self.witness.identify(&note)?;
        let size = signed.checkpoint().size;
        let _ = timeout(FOLLOWING, replay.log().sizes().wait_for(|replayed| *replayed >= size)).await;
        let (witness, now) = (Arc::clone(&self.witness), unix_seconds(&self.clock));
        if !self.settings.is_polling {
            return Ok(in_background(move || witness.check(&note)).await?);
        }
        let cosigned = in_background(move || witness.cosign_replayed(&note, now)).await?;
        // With the log's own signature: a server that was restored learns from it what it had signed.
        self.client.post(LOG_COSIGNATURE, cosigned.note().to_string()).await?;
        self.posted = Some(size);
        Ok(())
    }

    /// The key that was given, seen before, or is seen now for the first time.
    async fn begin(&mut self) -> Result<LogReplay, ExchangeFailure> {
        let witness = &self.witness;
        let pinned = witness.pinned_key()?;
        let key = match pinned.clone().or_else(|| self.settings.log_key.clone()) {
            Some(key) => key,
            None => self.client.log_key().await?,
        };
        if witness.has_key_of(&key) {
            let reason =
                "the key of the origin's log is the key of this witness: make a key of its own for it";
            return Err(ExchangeFailure::new(reason));
        }
        if pinned.is_none() {
            witness.pin_key(&key)?;
            tracing::info!(%key, origin = %self.origin, "the witness follows the log with this key from now on");
        }
        // For files that can be deleted.
        let dir = self.store.data_dir.witness().join("replay");
        let replay = LogReplay::start(&self.store, &dir, key)
            .map_err(|error| ExchangeFailure::caused("the log cannot be replayed", &error))?;
        witness.add_replay(replay.clone())?;
        self.replay = Some(replay.clone());
        Ok(replay)
    }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CosignRefusal> + Send + 'static,
) -> Result<T, CosignRefusal> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(CosignRefusal::Signer(error.to_string())))
}
