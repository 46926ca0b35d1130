//! Numbers in one wording, and who signed in the order of the signers file.

use countersign_core::documents::{signatures::Collected, signatures::SignatureSet, signers::SignersFile};
use countersign_core::rules::quorum::{ConditionKind, Consent, Tally};
use countersign_core::values::{digest::Sha512, time::Timestamp};
use countersign_explain::progress::{
    Names, asked_text, condition_text, describe_conditions, describe_groups,
};
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
    assert_eq!(Tally { collected: 1, needed: 2 }.to_string(), "has 1 of 2; 1 more");
    assert_eq!(Tally { collected: 2, needed: 2 }.to_string(), "has 2 of 2");
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
            "Enough of those in force agree false has 1 of 2; 1 more from bob",
            "Enough of those proposed agree true has 2 of 2",
            "Everyone who joins agrees true has 1 of 1",
        ]
    );
    assert_eq!(conditions[2].kind, ConditionKind::Added);
}

#[test]
fn more_signatures_than_needed_are_no_more_progress() {
    let file = file(1, &[("alice", 1), ("bob", 2)]);
    let groups = describe_groups(file.artifact_groups(), &signed_by(&[1, 2]), &Names::of([&file]));
    assert_eq!(groups[0].to_string(), "has 1 of 1");
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

#[test]
fn progress_says_what_is_missing_and_from_whom() {
    let told = |threshold, people: &[(&str, u8)], signed: &[u8]| {
        let file = file(threshold, people);
        describe_groups(file.artifact_groups(), &signed_by(signed), &Names::of([&file]))[0].to_string()
    };
    let three = [("alice", 1), ("bob", 2), ("carol", 3)];
    assert_eq!(told(2, &three, &[]), "has 0 of 2; 2 more from alice, bob or carol");
    assert_eq!(told(2, &three, &[1]), "has 1 of 2; 1 more from bob or carol");
    assert_eq!(told(3, &three, &[1]), "has 1 of 3; 2 more from bob and carol");
    assert_eq!(told(3, &three, &[1, 2]), "has 2 of 3; 1 more from carol");
    assert_eq!(told(1, &[("bob or eve", 1)], &[]), "has 0 of 1; 1 more from \"bob or eve\"");
    let many: Vec<(String, u8)> = (1..=9).map(|n| (format!("n{n}"), n)).collect();
    let many: Vec<(&str, u8)> = many.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(told(1, &many, &[]), "has 0 of 1; 1 more from n1, n2, n3, n4, n5, n6, n7 or 2 others");
    assert_eq!(told(1, &many[..8], &[]), "has 0 of 1; 1 more from n1, n2, n3, n4, n5, n6, n7 or n8");
}

#[test]
fn those_who_still_sign_a_proposal_are_named_once() {
    let asked = |current: Option<&SignersFile>, proposed: &SignersFile, signed: &[u8]| {
        let names = Names::of(current.into_iter().chain([proposed]));
        asked_text(&describe_conditions(&Consent { current, proposed }, &signed_by(signed), &names))
    };
    let three = file(2, &[("alice", 1), ("bob", 2), ("carol", 3)]);
    assert_eq!(asked(None, &three, &[]), "alice, bob and carol");
    assert_eq!(asked(None, &three, &[1]), "bob and carol");
    // Of any two in force, and bob's new key, two are proposed.
    let new_key = file(2, &[("alice", 1), ("bob", 4), ("carol", 3)]);
    assert_eq!(asked(Some(&three), &new_key, &[]), "2 of alice, bob, carol, and bob's new key");
    assert_eq!(asked(Some(&three), &new_key, &[1]), "1 of bob, carol, and bob's new key");
    assert_eq!(asked(Some(&three), &new_key, &[1, 4]), "1 of bob, carol");
    // Two in force can be two who leave.
    let others = file(2, &[("alice", 1), ("dave", 4)]);
    assert_eq!(asked(Some(&three), &others, &[]), "2 of alice, bob, carol, and alice and dave");
    assert_eq!(asked(Some(&three), &others, &[1, 2]), "dave");
}
