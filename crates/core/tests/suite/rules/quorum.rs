//! The threshold function (D8, D15): keys are counted as a set, every group must reach its own threshold.

use std::collections::BTreeSet;

use countersign_core::documents::signers::{Group, Signer};
use countersign_core::{rules::quorum::is_met, values::key::PublicKey};
use countersign_testing::{key, steady};
use proptest::prelude::*;

fn group(threshold: usize, members: &[u8]) -> Group {
    let signers = members.iter().map(|n| Signer::nameless(key(*n).public_key())).collect();
    Group { threshold, signers }
}

fn keys(people: &[u8]) -> BTreeSet<PublicKey> {
    people.iter().map(|n| key(*n).public_key()).collect()
}

/// Counts people, not keys: a model that shares nothing with the code.
fn naive(groups: &[(usize, Vec<u8>)], signed: &[u8]) -> bool {
    if groups.is_empty() {
        return false;
    }
    for (threshold, members) in groups {
        let mut seen = Vec::new();
        for member in members {
            if signed.contains(member) && !seen.contains(member) {
                seen.push(*member);
            }
        }
        if seen.len() < *threshold {
            return false;
        }
    }
    true
}

fn any_groups() -> impl Strategy<Value = Vec<(usize, Vec<u8>)>> {
    prop::collection::vec((1_usize..4, prop::collection::vec(1_u8..7, 1..5)), 0..4)
}

fn build(groups: &[(usize, Vec<u8>)]) -> Vec<Group> {
    groups.iter().map(|(threshold, members)| group(*threshold, members)).collect()
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn equals_a_naive_model(groups in any_groups(), signed in prop::collection::vec(1_u8..9, 0..7)) {
        prop_assert_eq!(is_met(&build(&groups), &keys(&signed)), naive(&groups, &signed));
    }
}
