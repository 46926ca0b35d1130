//! One request to cosign.

use std::{sync::Arc, time::Duration};

use countersign_core::log::checkpoint::{Cosignature, WitnessRequest};
use countersign_core::values::verifier_key::VerifierKey;
use countersign_log::{CosignRefusal, LogWitness, WitnessSigner};
use countersign_store::machine::clock::Clock;
use tokio::{task::spawn_blocking, time::Instant, time::sleep, time::timeout_at};

use crate::follow::mirror::MirrorState;

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
    pub signer: WitnessSigner,
    /// The key of the origin's log. `None` takes the key that the origin shows the first time.
    pub log_key: Option<VerifierKey>,
    /// Logs to serve as an ordinary witness.
    pub logs: Vec<VerifierKey>,
    /// Whether the witness fetches checkpoints and posts cosignatures, instead of being asked.
    pub is_polling: bool,
}
