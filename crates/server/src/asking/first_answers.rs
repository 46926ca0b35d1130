//! After a start the log signs nothing before its witnesses have said what they have seen (D93).

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use countersign_core::{
    log::policy::Policy,
    values::{key::PublicKey, time::Timestamp},
};
use countersign_log::TransparencyLog;

use super::settings::AskedWitness;
use crate::role::ServerRole;

/// Twice as long as one question can take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The first start after a restore may not be the one that succeeds.
const RECENTLY: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether the data directory is a copy, or was a mirror's. Then its log may have been ahead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restored {
    Yes,
    NotKnown,
}

impl Restored {
    /// A copy without nonces knows when it was made (D31).
    pub(crate) fn of(role: &ServerRole, now: Timestamp) -> Self {
        let ServerRole::Single { nonces } = role else { return Self::NotKnown };
        match nonces.floor() {
            Some(floor) if now < floor.later(RECENTLY) => Self::Yes,
            Some(_) | None => Self::NotKnown,
        }
    }
}

#[derive(Debug)]
pub(super) struct FirstAnswers {
    log: Arc<TransparencyLog>,
    policy: Policy,
    silent: Mutex<BTreeSet<PublicKey>>,
    /// Those that have cosigned this log, and say that they do not know it.
    forgetful: Mutex<BTreeSet<PublicKey>>,
    restored: Restored,
}

impl FirstAnswers {
    pub(super) fn of(
        log: Arc<TransparencyLog>,
        policy: Policy,
        asked: &[AskedWitness],
        restored: Restored,
    ) -> Self {
        let silent = Mutex::new(asked.iter().map(|witness| witness.key.key()).collect());
        Self { log, policy, silent, forgetful: Mutex::default(), restored }
    }

    pub(super) fn is_restored(&self) -> bool {
        self.restored == Restored::Yes
    }

    /// A witness says that it does not know a log that it has cosigned. What it has seen is still to be learnt (D209).
    pub(super) fn note_forgetful(&self, witness: &PublicKey) {
        self.forgetful.lock().unwrap_or_else(PoisonError::into_inner).insert(*witness);
    }

    /// A witness has said what it has seen, or that it does not know this log.
    pub(super) fn note(&self, witness: &PublicKey) {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are silent cannot have cosigned more without one of those that have answered.
        if silent.remove(witness) && (silent.is_empty() || !self.policy.is_met(&silent)) {
            self.log.allow_signing();
        }
    }

    /// Witnesses that are down for long must not stop a log that was only restarted.
    pub(super) async fn give_up(&self) {
        tokio::time::sleep(PATIENCE).await;
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if silent.is_empty() || !self.policy.is_met(&silent) {
            return;
        }
        let names = self.policy.witnesses().iter().filter(|witness| silent.contains(&witness.key.key()));
        let names = names.map(|witness| witness.name.as_str()).collect::<Vec<_>>().join(", ");
        let is_forgotten =
            !self.forgetful.lock().unwrap_or_else(PoisonError::into_inner).is_disjoint(&silent);
        match self.restored {
            Restored::NotKnown if is_forgotten => tracing::error!(
                witnesses = names,
                "witnesses that have cosigned this log do not know it any more, or do not answer: the log signs nothing before \
                 they say what they have seen. Remove those that are gone for good from the witnesses file"
            ),
            Restored::NotKnown => {
                tracing::warn!(
                    witnesses = names,
                    "witnesses do not answer: the log signs without their word"
                );
                self.log.allow_signing();
            }
            Restored::Yes => tracing::error!(
                witnesses = names,
                "witnesses do not answer, and this data directory was restored: the log signs nothing before they say what \
                 they have seen. Remove those that are gone for good from the witnesses file"
            ),
        }
    }
}
