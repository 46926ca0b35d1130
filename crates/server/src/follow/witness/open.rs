//! A witness: its settings, its records in the data directory, and one request to cosign.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use countersign_core::log::checkpoint::{Cosignature, WitnessRequest};
use countersign_core::values::verifier_key::VerifierKey;
use countersign_log::{CheckpointSigner, CosignRefusal, LogWitness, WitnessMemoryError};
use countersign_store::machine::clock::Clock;
use thiserror::Error;
use tokio::{task::spawn_blocking, time::Instant, time::sleep, time::timeout_at};

use crate::follow::mirror::MirrorState;

#[derive(Debug, Error)]
pub enum WitnessError {
    #[error(transparent)]
    Memory(#[from] WitnessMemoryError),
    #[error(
        "this witness has followed a log with the key {pinned}, and now gets the key {given}. A log with another key is \
         another log: choose an empty data directory"
    )]
    OtherKey { pinned: VerifierKey, given: VerifierKey },
    #[error("the key of this witness is also the key of the log {0}: make a key of its own for it")]
    SharedKey(String),
}

/// `dir` is the witness's own, below the data directory.
pub(crate) fn open(dir: &Path, settings: &WitnessSettings) -> Result<Arc<LogWitness>, WitnessError> {
    let witness = LogWitness::open(dir, settings.signer.clone())?;
    let own = witness.key().key();
    let known = settings.logs.iter().chain(&settings.log_key);
    if let Some(shared) = known.clone().find(|key| key.key() == own) {
        return Err(WitnessError::SharedKey(shared.name().to_owned()));
    }
    let pinned = witness.pinned_key()?;
    if let (Some(pinned), Some(given)) = (&pinned, &settings.log_key)
        && pinned != given
    {
        return Err(WitnessError::OtherKey { pinned: pinned.clone(), given: given.clone() });
    }
    let mut by_origin: BTreeMap<&str, Vec<VerifierKey>> = BTreeMap::new();
    for key in &settings.logs {
        by_origin.entry(key.name()).or_default().push(key.clone());
    }
    for keys in by_origin.into_values() {
        witness.add_log(keys)?;
    }
    match pinned.or_else(|| settings.log_key.clone()) {
        Some(key) => witness.expect_replay(&key)?,
        None if settings.logs.is_empty() => witness.expect_key(),
        None => {}
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
    tracing::info!(key = %witness.key(), "this is a witness");
    Ok(Arc::new(witness))
}

// One request to cosign.

/// How long a request waits for the mirror to come as far as its checkpoint.
const FOLLOWING: Duration = Duration::from_secs(5);
/// The pause between two looks whether the log is being replayed.
const BEGINNING: Duration = Duration::from_millis(20);
/// The pause between two looks whether the mirror has stopped.
const LOOK: Duration = Duration::from_millis(250);

/// A mirror that has stopped never comes so far, and the log is told so (D210). The log asks as soon as it has signed, and the mirror hears of commits at the same time.
pub(crate) async fn cosign(
    witness: &Arc<LogWitness>,
    request: WitnessRequest,
    clock: &Clock,
    mirror: Option<&MirrorState>,
) -> Result<Cosignature, CosignRefusal> {
    let request = Arc::new(request);
    let deadline = Instant::now() + FOLLOWING;
    loop {
        let (witness_here, request_here) = (Arc::clone(witness), Arc::clone(&request));
        let now = unix_seconds(clock);
        let cosigned = spawn_blocking(move || witness_here.add_checkpoint(&request_here, now)).await;
        let cosigned = cosigned.unwrap_or_else(|error| Err(CosignRefusal::Signer(error.to_string())));
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
        let mut sizes = replay.sizes();
        let look = deadline.min(Instant::now() + LOOK);
        let _ = timeout_at(look, sizes.wait_for(|replayed| *replayed >= size)).await;
        if *sizes.borrow() < size && Instant::now() >= deadline {
            return cosigned;
        }
    }
}

pub(crate) fn unix_seconds(clock: &Clock) -> u64 {
    u64::try_from(clock.now().unix_seconds()).unwrap_or(1)
}

// The settings of a witness: its key, the logs that it cosigns, and whether it asks or is asked.

#[derive(Debug, Clone)]
pub struct WitnessSettings {
    pub signer: CheckpointSigner,
    /// The key of the origin's log. `None` takes the key that the origin shows the first time.
    pub log_key: Option<VerifierKey>,
    /// Logs to serve as an ordinary witness.
    pub logs: Vec<VerifierKey>,
    /// Whether the witness fetches checkpoints and posts cosignatures, instead of being asked.
    pub is_polling: bool,
}
