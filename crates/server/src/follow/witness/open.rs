//! A data directory with the records of a witness.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use countersign_core::values::verifier_key::VerifierKey;
use countersign_log::{LogWitness, WitnessMemoryError};
use thiserror::Error;

use crate::follow::witness::cosigning::WitnessSettings;

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
