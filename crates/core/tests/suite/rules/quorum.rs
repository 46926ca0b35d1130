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

#[test]
fn a_key_that_a_group_lists_twice_counts_once() {
    assert!(!is_met(&[group(2, &[1, 1])], &keys(&[1])));
    assert!(!is_met(&[group(2, &[1, 1, 2])], &keys(&[1])));
    assert!(is_met(&[group(2, &[1, 1, 2])], &keys(&[1, 2])));
}

#[test]
fn a_key_in_two_groups_counts_in_both() {
    assert!(is_met(&[group(1, &[1, 2]), group(1, &[1, 3])], &keys(&[1])));
}

#[test]
fn every_group_must_reach_its_own_threshold() {
    let groups = [group(2, &[1, 2, 3]), group(1, &[4])];
    assert!(!is_met(&groups, &keys(&[1, 2, 3])));
    assert!(!is_met(&groups, &keys(&[1, 4])));
    assert!(is_met(&groups, &keys(&[1, 2, 4])));
}

#[test]
fn no_one_can_speak_for_a_role_without_groups() {
    assert!(!is_met(&[], &keys(&[1, 2, 3])));
    assert!(!is_met(&[], &BTreeSet::new()));
}

#[test]
fn strangers_count_nowhere() {
    assert!(!is_met(&[group(1, &[1])], &keys(&[2, 3, 4])));
}
