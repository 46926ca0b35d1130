//! The log and the witnesses of a signers file (D91). The vector `values/signers` has them at the edges: ages, keys
//! that a checkpoint cannot tell apart, one name with two keys.

use std::{collections::BTreeSet, time::Duration};

use countersign_core::documents::{signers::SignersFile, transparency::Transparency};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{bounds::SIGNERS_FILE_WITNESSES, json::ParseError};
use countersign_testing::{
    Signers, alice, assert_mentions, bob, carol, dave, key, log_key, ml_dsa_key, public, signers, witness_key,
};
use serde_json::{Value, json};

fn base() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()])
}

/// A file with this object.
fn parse(transparency: &Value) -> Result<SignersFile, ParseError> {
    let mut file: Value = serde_json::from_str(&base().text()).expect("JSON");
    file["transparency"] = transparency.clone();
    SignersFile::parse(file.to_string().as_bytes())
}

fn read(transparency: &Value) -> Transparency {
    parse(transparency).expect("a valid file").transparency().expect("it has one").clone()
}

fn text(key: &VerifierKey) -> String {
    key.to_string()
}

/// Two of three witnesses, a day.
fn good() -> Value {
    let witnesses: Vec<String> = (1..=3).map(|n| text(&witness_key(n))).collect();
    json!({
        "log": text(&log_key()),
        "witnesses": [{"threshold": 2, "keys": witnesses}],
        "max_age_seconds": 86_400,
    })
}

/// The good object with one value replaced.
fn with(pointer: &str, value: &Value) -> Value {
    let mut changed = good();
    *changed.pointer_mut(pointer).expect("a place in the object") = value.clone();
    changed
}

#[track_caller]
fn assert_refused(transparency: &Value, parts: &[&str]) {
    let error = parse(transparency).expect_err("the object is wrong");
    assert_mentions(&error.to_string(), parts);
}

#[test]
fn a_file_says_which_log_witnesses_and_age() {
    let read = read(&good());
    assert_eq!(read.log(), &log_key());
    assert_eq!(read.max_age(), Some(Duration::from_secs(86_400)));
    let [group] = read.witnesses() else { panic!("one group") };
    assert_eq!((group.threshold, &group.keys), (2, &vec![witness_key(1), witness_key(2), witness_key(3)]));
    assert_eq!(read.verifier_keys().count(), 4);
}

#[test]
fn it_is_optional_and_so_are_witnesses() {
    assert_eq!(SignersFile::parse(base().text().as_bytes()).unwrap().transparency(), None);
    let alone = read(&json!({"log": text(&log_key())}));
    assert_eq!((alone.witnesses().len(), alone.max_age()), (0, None));
}

#[test]
fn it_is_written_as_it_was_read() {
    for object in [good(), json!({"log": text(&log_key())})] {
        let file = parse(&object).unwrap();
        let written = file.write();
        assert_eq!(SignersFile::parse(&written).unwrap(), file);
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap()["transparency"], object);
    }
}

#[test]
fn a_witness_that_replays_is_an_object_and_every_other_one_its_key() {
    let replaying = |n| json!({"key": text(&witness_key(n)), "replaying": true});
    let mut object = with("/witnesses/0/keys/1", &replaying(2));
    let file = parse(&object).unwrap();
    let transparency = file.transparency().unwrap();
    let [group] = transparency.witnesses() else { panic!("one group") };
    assert_eq!(group.keys, [witness_key(1), witness_key(2), witness_key(3)]);
    assert_eq!([1, 2, 3].map(|n| group.replays(&witness_key(n))), [false, true, false]);
    assert_eq!(transparency.policy().replaying_keys(), [witness_key(2)].into());
    assert_eq!(serde_json::from_slice::<Value>(&file.write()).unwrap()["transparency"], object);
    // Any two of three have one that replays, if two do.
    assert_eq!(transparency.policy().tolerance().unwrap().must_lie, 0);
    object["witnesses"][0]["keys"][2] = replaying(3);
    assert_eq!(read(&object).policy().tolerance().unwrap().must_lie, 1);
}

#[test]
fn its_keys_sign_for_no_role() {
    let file = parse(&good()).unwrap();
    assert_eq!(file.keys(), public([&alice(), &bob(), &dave()]));
    assert!(!file.lists(&log_key().ed25519().unwrap()));
}

#[test]
fn a_refusal_says_what_is_wrong_and_where() {
    let log = text(&log_key());
    let again =
        |name: &str, n: u8| text(&VerifierKey::new(name, KeyKind::Witness, key(n).public_key()).unwrap());
    let in_second = json!([{"threshold": 1, "keys": [text(&witness_key(1))]}, good()["witnesses"][0]]);
    let many: Vec<String> = (1..=33).map(|n| text(&witness_key(n))).collect();
    let singly: Vec<Value> = many.iter().map(|key| json!({"threshold": 1, "keys": [key]})).collect();
    let table = [
        (json!({"log": log, "witnesses": good()["witnesses"]}), "max_age_seconds", "missing"),
        (json!({"log": log, "max_age_seconds": 86_400}), "max_age_seconds", "needs witnesses"),
        (json!({"log": log, "url": "https://sign.example.org"}), "url", "unknown field"),
        (with("/witnesses/0/keys", &json!([])), "witnesses[0].keys", "at least one"),
        (with("/witnesses/0/threshold", &json!(4)), "witnesses[0].threshold", ""),
        (with("/log", &json!(text(&witness_key(1)))), "log", "key of a witness"),
        (with("/log", &json!(log.replacen("sign.", "sing.", 1))), "log", "id does not belong"),
        (with("/log", &json!(format!("{}{log}", "a".repeat(255)))), "log", "255 bytes"),
        (with("/witnesses/0/keys/1", &json!(log)), "witnesses[0].keys[1]", "key of a log"),
        (
            with("/witnesses/0/keys/2", &json!(again("other.example/w", 101))),
            "witnesses[0].keys[2]",
            "already",
        ),
        (
            with("/witnesses/0/keys/2", &json!(again("sign.example.org/witness", 100))),
            "witnesses[0].keys[2]",
            "already",
        ),
        (with("/witnesses", &in_second), "witnesses[1].keys[0]", "already"),
        (with("/witnesses/0/keys", &json!(many)), "witnesses", "at most 32"),
        (with("/witnesses", &json!(singly)), "witnesses", "at most 32"),
    ];
    for (wrong, place, words) in table {
        assert_refused(&wrong, &[&format!("transparency.{place}"), words]);
    }
    assert_eq!(SIGNERS_FILE_WITNESSES, 32);
}

#[test]
fn a_witness_with_two_keys_is_one_witness_in_one_group() {
    let second = ml_dsa_key(witness_key(1).name(), 9);
    let keys = json!([text(&witness_key(1)), text(&second), text(&witness_key(2))]);
    let object = with("/witnesses/0", &json!({"threshold": 2, "keys": keys}));
    let file = parse(&object).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&file.write()).unwrap()["transparency"], object);
    let [group] = file.transparency().unwrap().witnesses() else { panic!("one group") };
    assert_eq!((group.keys.len(), group.witnesses()), (3, 2));
    let policy = file.transparency().unwrap().policy();
    let cosigned = |keys: [&VerifierKey; 2]| policy.is_met(&keys.into_iter().cloned().collect());
    assert!(!cosigned([&witness_key(1), &second]) && cosigned([&second, &witness_key(2)]));
    assert_refused(
        &with("/witnesses/0", &json!({"threshold": 3, "keys": keys})),
        &["witnesses[0].threshold"],
    );
    let apart = json!([good()["witnesses"][0], {"threshold": 1, "keys": [text(&second)]}]);
    assert_refused(&with("/witnesses", &apart), &["witnesses[1].keys[0]", "in another group"]);
}

#[test]
fn no_key_of_it_is_a_signers_in_any_role() {
    let file = base().admin(1, [&carol()]).revocation(1, [&key(5)]);
    let log = |n: u8| VerifierKey::new("sign.example.org/log", KeyKind::Log, key(n).public_key()).unwrap();
    for n in [1, 3, 4, 5] {
        let error = SignersFile::parse(file.clone().log(&log(n), &[]).text().as_bytes()).unwrap_err();
        assert_mentions(
            &error.to_string(),
            &["transparency", "log", "sign.example.org/log", "also a signer's"],
        );
        let witness = VerifierKey::new("w.example", KeyKind::Witness, key(n).public_key()).unwrap();
        let text = file.clone().log(&log_key(), &[(1, &[witness_key(1), witness])]).text();
        let error = SignersFile::parse(text.as_bytes()).unwrap_err();
        assert_mentions(&error.to_string(), &["transparency", "witness", "w.example", "also a signer's"]);
    }
    assert!(SignersFile::parse(file.log(&log(6), &[]).text().as_bytes()).is_ok());
}

#[test]
fn its_policy_needs_every_group() {
    let groups: &[(usize, &[VerifierKey])] =
        &[(2, &[witness_key(1), witness_key(2), witness_key(3)]), (1, &[witness_key(4)])];
    let file = SignersFile::parse(base().log(&log_key(), groups).text().as_bytes()).unwrap();
    let policy = file.transparency().unwrap().policy();
    assert_eq!(policy.log_keys(), [log_key()]);
    let cosigned = |numbers: &[u8]| numbers.iter().map(|n| witness_key(*n)).collect::<BTreeSet<_>>();
    assert!(policy.is_met(&cosigned(&[1, 3, 4])));
    assert!(!policy.is_met(&cosigned(&[1, 2, 3])));
    assert!(!policy.is_met(&cosigned(&[1, 4])));
    let alone = read(&json!({"log": text(&log_key())})).policy();
    assert!(alone.is_met(&BTreeSet::new()) && alone.tolerance().is_none());
}
