//! Policies, and how they count (D85).

use std::collections::BTreeSet;

use countersign_core::{
    log::policy::Policy,
    values::{key::PublicKey, verifier_key::VerifierKey},
};

use super::promises::assert_shown;

pub fn check(data: &[u8]) {
    let policy = match Policy::parse(data) {
        Ok(policy) => policy,
        Err(error) => return assert_shown(&error),
    };
    let written = policy.to_string();
    assert_eq!(Policy::parse(written.as_bytes()).as_ref(), Ok(&policy), "what we write can be read");
    assert_eq!(list_keys(&policy).len(), policy.logs().len() + policy.witnesses().len(), "a key occurs once");
    let everyone = policy.quorum_keys();
    assert!(policy.is_met(&everyone));
    let Some(tolerance) = policy.tolerance() else { return assert!(everyone.is_empty()) };
    assert!(!policy.is_met(&BTreeSet::new()));
    assert!((1..=everyone.len()).contains(&tolerance.needed) && tolerance.witnesses == everyone.len());
    assert!(tolerance.needed + tolerance.may_be_down <= everyone.len());
    assert!(tolerance.must_collude <= tolerance.needed);
    let times = || everyone.iter().copied().zip(1..);
    let as_of = policy.as_of(times()).expect("everyone is enough");
    let since = |time: u64| -> BTreeSet<PublicKey> {
        times().filter(|(_, signed)| *signed >= time).map(|(key, _)| key).collect()
    };
    assert!(policy.is_met(&since(as_of)) && !policy.is_met(&since(as_of + 1)));
}

/// The keys of logs and witnesses.
pub(super) fn list_keys(policy: &Policy) -> BTreeSet<PublicKey> {
    policy.log_keys().iter().chain(&policy.witness_keys()).map(VerifierKey::key).collect()
}
