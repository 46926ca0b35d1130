//! Which keys are asked about, and what of a set of signatures is theirs.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::{
    documents::signatures::SignatureSet,
    values::{key::PublicKey, time::Timestamp},
};

/// Keys that are no longer trusted, all together.
#[derive(Debug, Clone)]
pub struct IncidentQuestion {
    pub keys: BTreeSet<PublicKey>,
    /// The time from which on signatures count; without it all do.
    pub since: Option<Timestamp>,
}

/// The time at which each of the keys signed something.
pub type SigningTimes = BTreeMap<PublicKey, Timestamp>;

impl IncidentQuestion {
    /// The keys that signed, since the time that is asked for.
    pub(super) fn select(&self, set: &SignatureSet) -> SigningTimes {
        let mut signed = self.select_ever(set);
        signed.retain(|_, at| self.since.is_none_or(|since| *at >= since));
        signed
    }

    pub(super) fn select_ever(&self, set: &SignatureSet) -> SigningTimes {
        let named = set.entries.iter().filter(|(key, _)| self.keys.contains(key));
        named.map(|(key, collected)| (*key, collected.collected_at)).collect()
    }

    pub(super) fn without(&self, set: &SignatureSet) -> BTreeSet<PublicKey> {
        set.signers().difference(&self.keys).copied().collect()
    }

    pub(super) fn with(&self, set: &SignatureSet) -> BTreeSet<PublicKey> {
        set.signers().union(&self.keys).copied().collect()
    }

    /// Whether one of the keys is among the signers, whatever the time.
    pub(super) fn has_any(&self, set: &SignatureSet) -> bool {
        set.entries.keys().any(|key| self.keys.contains(key))
    }
}
