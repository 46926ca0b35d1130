//! Numbers in one wording, and who signed in the order of the signers file.

use countersign_core::documents::{signatures::SignatureSet, signers::SignersFile};
use countersign_core::rules::quorum::{ConditionKind, Consent, Tally};
use countersign_core::values::key::SecretKey;
use countersign_explain::progress::{
    Names, asked_text, condition_text, describe_conditions, describe_groups,
};
use countersign_explain::words::rule_text;
use countersign_testing::{evidence::signed_by, key};

use crate::files::file;

fn signed(people: &[u8]) -> SignatureSet {
    let people: Vec<SecretKey> = people.iter().map(|n| key(*n)).collect();
    signed_by("file", &people.iter().collect::<Vec<_>>())
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
        (file("artifact 2: alice 1, bob 2"), file("artifact 2: alice 1, carol 3, bob 2"));
    let consent = Consent { current: Some(&current), proposed: &proposed };
    let conditions = describe_conditions(&consent, &signed(&[1, 3]), &Names::of([&current, &proposed]));
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
    let file = file("artifact 1: alice 1, bob 2");
    let groups = describe_groups(file.artifact_groups(), &signed(&[1, 2]), &Names::of([&file]));
    assert_eq!(groups[0].to_string(), "has 1 of 1");
    assert!(groups[0].is_met());
}

#[test]
fn keys_are_listed_in_the_order_of_the_file_and_strangers_last() {
    let names = Names::of([&file("artifact 1: zoe 4, alice 1, mary 3")]);
    let keys = [5, 1, 3, 4].map(|n| key(n).public_key());
    let listed: Vec<Option<String>> = names.in_order(keys).into_iter().map(|signer| signer.name).collect();
    assert_eq!(listed, [Some("zoe".into()), Some("alice".into()), Some("mary".into()), None]);
}

#[test]
fn progress_says_what_is_missing_and_from_whom() {
    let told = |group: &str, by: &[u8]| {
        let file = file(&format!("artifact {group}"));
        describe_groups(file.artifact_groups(), &signed(by), &Names::of([&file]))[0].to_string()
    };
    let three = "alice 1, bob 2, carol 3";
    assert_eq!(told(&format!("2: {three}"), &[]), "has 0 of 2; 2 more from alice, bob or carol");
    assert_eq!(told(&format!("2: {three}"), &[1]), "has 1 of 2; 1 more from bob or carol");
    assert_eq!(told(&format!("3: {three}"), &[1]), "has 1 of 3; 2 more from bob and carol");
    assert_eq!(told(&format!("3: {three}"), &[1, 2]), "has 2 of 3; 1 more from carol");
    assert_eq!(told("1: bob or eve 1", &[]), "has 0 of 1; 1 more from \"bob or eve\"");
    let eight = "1: n1 1, n2 2, n3 3, n4 4, n5 5, n6 6, n7 7, n8 8";
    assert_eq!(told(eight, &[]), "has 0 of 1; 1 more from n1, n2, n3, n4, n5, n6, n7 or n8");
    let nine = format!("{eight}, n9 9");
    assert_eq!(told(&nine, &[]), "has 0 of 1; 1 more from n1, n2, n3, n4, n5, n6, n7 or 2 others");
}

#[test]
fn those_who_still_sign_a_proposal_are_named_once() {
    let asked = |current: Option<&SignersFile>, proposed: &SignersFile, by: &[u8]| {
        let names = Names::of(current.into_iter().chain([proposed]));
        asked_text(&describe_conditions(&Consent { current, proposed }, &signed(by), &names))
    };
    let three = file("artifact 2: alice 1, bob 2, carol 3");
    assert_eq!(asked(None, &three, &[]), "alice, bob and carol");
    assert_eq!(asked(None, &three, &[1]), "bob and carol");
    // Of any two in force, and bob's new key, two are proposed.
    let new_key = file("artifact 2: alice 1, bob 4, carol 3");
    assert_eq!(asked(Some(&three), &new_key, &[]), "2 of alice, bob, carol, and bob's new key");
    assert_eq!(asked(Some(&three), &new_key, &[1]), "1 of bob, carol, and bob's new key");
    assert_eq!(asked(Some(&three), &new_key, &[1, 4]), "1 of bob, carol");
    // Two in force can be two who leave.
    let others = file("artifact 2: alice 1, dave 4");
    assert_eq!(asked(Some(&three), &others, &[]), "2 of alice, bob, carol, and alice and dave");
    assert_eq!(asked(Some(&three), &others, &[1, 2]), "dave");
}
