//! Numbers in one wording, and who signed in the order of the signers file.

use countersign_core::documents::{signatures::Collected, signatures::SignatureSet, signers::SignersFile};
use countersign_core::rules::quorum::{ConditionKind, Consent, Tally};
use countersign_core::values::{digest::Sha512, time::Timestamp};
use countersign_explain::progress::{Names, condition_text, describe_conditions};
use countersign_explain::words::rule_text;
use countersign_testing::key;

/// A file in which these people, in this order, sign and administrate.
fn file(threshold: usize, people: &[(&str, u8)]) -> SignersFile {
    let member = |(name, n): &(&str, u8)| {
        let key = key(*n).public_key();
        format!(r#"{{"kind": "key", "data": {{"pubkey": "{key}"}}, "name": "{name}"}}"#)
    };
    let signers: Vec<String> = people.iter().map(member).collect();
    let text = format!(
        r#"{{"version": 1, "timestamp": "2026-01-31T10:00:00Z",
            "artifact_signers": [{{"threshold": {threshold}, "signers": [{}]}}]}}"#,
        signers.join(", ")
    );
    SignersFile::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn signed_by(people: &[u8]) -> SignatureSet {
    let mut set = SignatureSet::default();
    for n in people {
        let collected_at = Timestamp::parse("2026-02-01T10:00:00Z").expect("a time");
        let signature = key(*n).sign(&Sha512::of(b"file"));
        set.add(key(*n).public_key(), Collected { signature, collected_at });
    }
    set
}

#[test]
fn progress_and_rules_have_one_wording() {
    assert_eq!(Tally { collected: 1, needed: 2 }.to_string(), "1 of 2 signatures");
    assert_eq!(Tally { collected: 0, needed: 1 }.to_string(), "0 of 1 signature");
    assert_eq!(rule_text(2, 3), "any 2 of 3 keys");
    assert_eq!(rule_text(1, 1), "any 1 of 1 key");
}

#[test]
fn a_proposal_has_its_conditions_with_numbers() {
    let (current, proposed) =
        (file(2, &[("alice", 1), ("bob", 2)]), file(2, &[("alice", 1), ("carol", 3), ("bob", 2)]));
    let consent = Consent { current: Some(&current), proposed: &proposed };
    let conditions = describe_conditions(&consent, &signed_by(&[1, 3]), &Names::of([&current, &proposed]));
    let told: Vec<String> = conditions
        .iter()
        .map(|condition| {
            let groups = condition.ways.iter().flat_map(|way| &way.groups);
            let groups: Vec<String> = groups.map(ToString::to_string).collect();
            format!("{} {} {}", condition_text(condition.kind), condition.is_met, groups.join(", "))
        })
        .collect();
    assert_eq!(
        told,
        [
            "Enough of those in force agree false 1 of 2 signatures (any 2 of 2 keys)",
            "Enough of those proposed agree true 2 of 2 signatures (any 2 of 3 keys)",
            "Everyone who joins agrees true 1 of 1 signature (any 1 of 1 key)",
        ]
    );
    assert_eq!(conditions[2].kind, ConditionKind::Added);
}

#[test]
fn more_signatures_than_needed_are_no_more_progress() {
    let file = file(1, &[("alice", 1), ("bob", 2)]);
    let groups = countersign_explain::progress::describe_groups(
        file.artifact_groups(),
        &signed_by(&[1, 2]),
        &Names::of([&file]),
    );
    assert_eq!(groups[0].to_string(), "1 of 1 signature (any 1 of 2 keys)");
    assert!(groups[0].is_met());
}

#[test]
fn keys_are_listed_in_the_order_of_the_file_and_strangers_last() {
    let people = [("zoe", 4), ("alice", 1), ("mary", 3)];
    let names = Names::of([&file(1, &people)]);
    let keys = [5, 1, 3, 4].map(|n| key(n).public_key());
    let listed: Vec<Option<String>> = names.in_order(keys).into_iter().map(|signer| signer.name).collect();
    assert_eq!(listed, [Some("zoe".into()), Some("alice".into()), Some("mary".into()), None]);
}
