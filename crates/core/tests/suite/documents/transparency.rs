//! The log and the witnesses of a signers file (D91). The vector `values/signers` has them at the edges: ages, keys that a
//! checkpoint cannot tell apart, one name with two keys.

use std::{collections::BTreeSet, time::Duration};

use countersign_core::documents::{signers::SignersFile, transparency::Transparency};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{bounds::SIGNERS_FILE_WITNESSES, json::ParseError};
use countersign_testing::{
    Signers, alice, assert_mentions, bob, carol, dave, key, log_key, public, signers, witness_key,
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
    assert_eq!(transparency.policy().replaying_keys(), [witness_key(2).key()].into());
    assert_eq!(serde_json::from_slice::<Value>(&file.write()).unwrap()["transparency"], object);
    // Any two of three have one that replays, if two do.
    assert_eq!(transparency.policy().tolerance().unwrap().must_lie, 0);
    object["witnesses"][0]["keys"][2] = replaying(3);
    assert_eq!(read(&object).policy().tolerance().unwrap().must_lie, 1);
    for wrong in [
        json!({"key": text(&witness_key(2)), "replaying": false}),
        json!({"key": text(&witness_key(2))}),
        json!({"replaying": true}),
        json!({"key": text(&witness_key(2)), "replaying": true, "url": "x"}),
        json!({"key": text(&witness_key(1)), "replaying": true}),
        json!([text(&witness_key(2))]),
    ] {
        assert_refused(&with("/witnesses/0/keys/1", &wrong), &["transparency.witnesses[0].keys[1]"]);
    }
}

#[test]
fn its_keys_sign_for_no_role() {
    let file = parse(&good()).unwrap();
    assert_eq!(file.keys(), public([&alice(), &bob(), &dave()]));
    assert!(!file.lists(&log_key().key()));
}

#[test]
fn witnesses_need_an_age_and_an_age_needs_witnesses() {
    let mut object = good();
    object.as_object_mut().unwrap().remove("max_age_seconds");
    assert_refused(&object, &["transparency.max_age_seconds", "missing"]);
    let object = json!({"log": text(&log_key()), "max_age_seconds": 86_400});
    assert_refused(&object, &["transparency.max_age_seconds", "needs witnesses"]);
}

#[test]
fn unknown_fields_and_other_types_are_refused() {
    for wrong in [Value::Null, json!([]), json!("x"), json!({})] {
        assert_refused(&wrong, &["transparency"]);
    }
    let mut object = good();
    object["url"] = json!("https://sign.example.org");
    assert_refused(&object, &["transparency.url", "unknown field"]);
    let mut object = good();
    object["witnesses"][0]["name"] = json!("x");
    assert_refused(&object, &["transparency.witnesses[0].name", "unknown field"]);
    for wrong in [Value::Null, json!([]), json!({}), json!([[]])] {
        assert_refused(&with("/witnesses", &wrong), &["transparency.witnesses"]);
    }
}

#[test]
fn a_group_has_witnesses_and_a_threshold_that_they_can_reach() {
    assert_refused(
        &with("/witnesses/0/keys", &json!([])),
        &["transparency.witnesses[0].keys", "at least one"],
    );
    for wrong in [json!(0), json!(4), json!(u64::MAX), json!("2"), Value::Null] {
        assert_refused(&with("/witnesses/0/threshold", &wrong), &["transparency.witnesses[0].threshold"]);
    }
    assert!(parse(&with("/witnesses/0/threshold", &json!(3))).is_ok());
}

#[test]
fn the_log_has_a_log_key_and_a_witness_a_witness_key() {
    assert_refused(&with("/log", &json!(text(&witness_key(1)))), &["transparency.log", "key of a witness"]);
    assert_refused(
        &with("/witnesses/0/keys/1", &json!(text(&log_key()))),
        &["transparency.witnesses[0].keys[1]", "key of a log"],
    );
    let changed = text(&log_key()).replacen("sign.", "sing.", 1);
    assert_refused(&with("/log", &json!(changed)), &["transparency.log", "id does not belong"]);
    assert_refused(&with("/log", &json!(alice().public_key().to_string())), &["transparency.log"]);
}

#[test]
fn a_public_key_occurs_once_whatever_its_name_and_role() {
    let again = |name: &str, n: u8| VerifierKey::new(name, KeyKind::Witness, key(n).public_key()).unwrap();
    for twice in [witness_key(1), again("other.example/w", 101), again("sign.example.org/witness", 100)] {
        let object = with("/witnesses/0/keys/2", &json!(text(&twice)));
        assert_refused(&object, &["transparency.witnesses[0].keys[2]", twice.name(), "already"]);
        let mut object = good();
        let group = json!({"threshold": 1, "keys": [text(&twice)]});
        object["witnesses"].as_array_mut().unwrap().push(group);
        assert_refused(&object, &["transparency.witnesses[1].keys[0]", "already"]);
    }
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
fn there_are_at_most_32_witnesses_in_all_groups_together() {
    let keys: Vec<VerifierKey> = (1..=33).map(witness_key).collect();
    let parse = |groups: &[(usize, &[VerifierKey])]| {
        SignersFile::parse(base().log(&log_key(), groups).text().as_bytes())
    };
    assert_eq!(SIGNERS_FILE_WITNESSES, 32);
    assert!(parse(&[(1, &keys[..32])]).is_ok());
    let many: Vec<(usize, &[VerifierKey])> = keys.chunks(1).map(|one| (1, one)).collect();
    let policy = parse(&many[..32]).unwrap().transparency().unwrap().policy();
    assert_eq!(policy.tolerance().unwrap().needed, 32);
    for groups in [vec![(1, &keys[..])], many] {
        assert_mentions(&parse(&groups).unwrap_err().to_string(), &["transparency.witnesses", "at most 32"]);
    }
}

#[test]
fn a_name_has_at_most_255_bytes() {
    let named = |length: usize| {
        let name = "a".repeat(length);
        let good = VerifierKey::new(&name[..255.min(length)], KeyKind::Log, key(100).public_key()).unwrap();
        format!("{}{good}", &name[255.min(length)..])
    };
    assert!(parse(&with("/log", &json!(named(255)))).is_ok());
    assert_refused(&with("/log", &json!(named(256))), &["transparency.log", "255 bytes"]);
}

#[test]
fn its_policy_needs_every_group() {
    let groups: &[(usize, &[VerifierKey])] =
        &[(2, &[witness_key(1), witness_key(2), witness_key(3)]), (1, &[witness_key(4)])];
    let file = SignersFile::parse(base().log(&log_key(), groups).text().as_bytes()).unwrap();
    let policy = file.transparency().unwrap().policy();
    assert_eq!(policy.log_keys(), [log_key()]);
    let cosigned = |numbers: &[u8]| numbers.iter().map(|n| witness_key(*n).key()).collect::<BTreeSet<_>>();
    assert!(policy.is_met(&cosigned(&[1, 3, 4])));
    assert!(!policy.is_met(&cosigned(&[1, 2, 3])));
    assert!(!policy.is_met(&cosigned(&[1, 4])));
    let alone = read(&json!({"log": text(&log_key())})).policy();
    assert!(alone.is_met(&BTreeSet::new()) && alone.tolerance().is_none());
}
