//! Cosignatures on their way into the log.

use std::time::Duration;

use countersign_core::{
    log::{
        checkpoint::{Checkpoint, Cosignature},
        note::Note,
    },
    values::time::Timestamp,
};
use countersign_log::{CosignError, TakeError, TransparencyLog};

/// Clients refuse a staple with a cosignature that is five minutes ahead of their clock (D86), which may be behind ours.
const MAX_AHEAD: Duration = Duration::from_secs(2 * 60);

/// What witnesses have signed, asked or not. Cosignatures of more commits than there are can stop the log (D93, D190).
pub(crate) fn take_cosignatures(
    log: &TransparencyLog,
    checkpoint: &Checkpoint,
    note: &Note,
    now: Timestamp,
) -> Result<Vec<Cosignature>, CosignError> {
    let witnesses = log.policy().map(|policy| policy.witness_keys()).unwrap_or_default();
    let signers = note.signers(&witnesses)?;
    if signers.is_empty() || checkpoint.origin != log.key().name() {
        return Err(CosignError::UnknownWitness);
    }
    let latest = u64::try_from(now.later(MAX_AHEAD).unix_seconds()).unwrap_or_default();
    if let Some(signer) = signers.iter().find(|signer| signer.time.is_some_and(|time| time > latest)) {
        return Err(CosignError::Ahead(signer.key.name().to_owned()));
    }
    let began = u64::try_from(now.unix_seconds()).unwrap_or_default().saturating_sub(log.age().as_secs());
    for signer in &signers {
        log.note_witnessed(&signer.key, checkpoint.size, Some(checkpoint.root))?;
        // Anyone can post again what a witness said before the start.
        if signer.time.is_some_and(|time| time >= began) {
            log.note_answered(&signer.key, checkpoint.size)?;
        }
    }
    match log.take_checkpoint(note, "a witness") {
        // Most notes have no signature of the log, or no more commits than are known.
        Ok(_) | Err(TakeError::NotOurs { .. } | TakeError::NotNewer { .. }) => {}
        Err(TakeError::Log(error)) => return Err(error.into()),
    }
    log.add_cosignatures(checkpoint.size, note.signatures())
}
