//! Signers files with a log and witnesses, at the edges of what is accepted (D91).

use countersign_core::values::key::{PublicKey, SecretKey, encode_base64};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_testing::{alice, bob, key, log_key, signers, witness_key};
use serde_json::{Value, json};

pub(super) fn transparencies() -> Vec<String> {
    let [log, first, second, third] =
        [log_key(), witness_key(1), witness_key(2), witness_key(3)].map(|key| key.to_string());
    let good = json!({
        "log": log,
        "witnesses": [{"threshold": 2, "keys": [first, second, third]}],
        "max_age_seconds": 86_400,
    });
    let with = |pointer: &str, value: Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).expect("a place in the object") = value;
        changed
    };
    let mut objects = vec![good.clone(), json!({"log": log}), json!({}), json!(null), json!([]), json!("x")];
    objects.extend([
        json!({"log": log, "max_age_seconds": 60}),
        json!({"log": log, "witnesses": good["witnesses"]}),
    ]);
    objects.push(json!({"witnesses": good["witnesses"], "max_age_seconds": 60}));
    objects.push(json!({"log": log, "url": "https://a.example"}));
    for seconds in [59, 60, 315_360_000, 315_360_001, 0] {
        objects.push(with("/max_age_seconds", json!(seconds)));
    }
    objects
        .extend([json!("60"), json!(null), json!(60.5), json!(-60)].map(|age| with("/max_age_seconds", age)));
    for threshold in [json!(0), json!(1), json!(3), json!(4), json!(-1), json!("2"), json!(null)] {
        objects.push(with("/witnesses/0/threshold", threshold));
    }
    for groups in [
        json!([]),
        json!({}),
        json!(null),
        json!([{"threshold": 0, "keys": []}]),
        json!([{"threshold": 1, "keys": []}]),
    ] {
        objects.push(with("/witnesses", groups));
    }
    objects.push(with("/witnesses/0", json!({"threshold": 1, "keys": [first], "name": "x"})));
    objects.push(with("/witnesses/0", json!({"keys": [first]})));
    objects.push(with("/witnesses/0", json!({"threshold": 1})));
    objects.push(with("/witnesses/0/keys", json!(first)));
    let two_groups = |other: &str| {
        let groups = json!([{"threshold": 1, "keys": [first, second]}, {"threshold": 1, "keys": [other]}]);
        with("/witnesses", groups)
    };
    objects.extend([&third, &second].map(|other| two_groups(other)));
    for count in [32, 33] {
        let keys: Vec<String> = (1..=count).map(|n| witness_key(n).to_string()).collect();
        objects.push(with("/witnesses/0/keys", json!(keys)));
        let groups: Vec<Value> = keys.iter().map(|key| json!({"threshold": 1, "keys": [key]})).collect();
        objects.push(with("/witnesses", json!(groups)));
    }
    objects.extend(logs(&log).into_iter().map(|log| with("/log", json!(log))));
    objects.extend(last_witnesses(&first).into_iter().map(|key| with("/witnesses/0/keys/2", json!(key))));
    for last in [
        json!({"key": third, "replaying": true}),
        json!({"key": third, "replaying": false}),
        json!({"key": third, "replaying": "true"}),
        json!({"key": third, "replaying": 1}),
        json!({"key": third}),
        json!({"replaying": true}),
        json!({"key": third, "replaying": true, "name": "x"}),
        json!({"key": second, "replaying": true}),
        json!({"key": log, "replaying": true}),
        json!({"key": {"key": third, "replaying": true}, "replaying": true}),
        json!([third]),
        json!(1),
        json!(null),
    ] {
        objects.push(with("/witnesses/0/keys/2", last));
    }
    let all: Vec<Value> = [&first, &second, &third].map(|key| json!({"key": key, "replaying": true})).into();
    objects.push(with("/witnesses/0/keys", json!(all)));
    let [twin, other] = [94_678_u32, 107_095].map(twin);
    objects.push(with("/witnesses/0/keys/1", json!(twin)));
    let mut twins = with("/witnesses/0/keys/1", json!(twin));
    twins["witnesses"][0]["keys"][2] = json!(other);
    objects.push(twins);
    objects.iter().map(file).collect()
}

fn file(transparency: &Value) -> String {
    let text = signers("2026-01-01T00:00:00Z").artifact(1, [&alice()]).master(1, [&bob()]).text();
    let mut file: Value = serde_json::from_str(&text).expect("JSON");
    file["transparency"] = transparency.clone();
    file.to_string()
}

fn spell(name: &str, kind: KeyKind, key: PublicKey) -> String {
    VerifierKey::new(name, kind, key).expect("a name").to_string()
}

/// Verifier keys in the place of the log's.
fn logs(log: &str) -> Vec<String> {
    let (head, encoded) = log.rsplit_once('+').expect("three parts");
    let (name, id) = head.split_once('+').expect("three parts");
    let log_of = |name: &str| spell(name, KeyKind::Log, key(100).public_key());
    let mut typed = vec![2];
    typed.extend(key(100).public_key().as_bytes());
    let mut weak = vec![1, 1];
    weak.extend([0; 31]);
    let mut texts = vec![
        String::new(),
        "+".to_owned(),
        "++".to_owned(),
        head.to_owned(),
        format!("{log} "),
        format!(" {log}"),
        format!("{log}="),
        format!("{log}\n"),
        format!("{name}+{}+{encoded}", id.to_uppercase()),
        format!("{name}+{}+{encoded}", &id[1..]),
        format!("{name}+0{id}+{encoded}"),
        format!("{name}+00000000+{encoded}"),
        format!("{name}x+{id}+{encoded}"),
        format!("+{id}+{encoded}"),
        format!("{name}+{id}+{}", &encoded[..43]),
        format!("{name}+{id}+{encoded}AAAA"),
        format!("{name}+{id}+{}", encode_base64(&typed)),
        format!("{name}+{id}+{}", encode_base64(&weak)),
        format!("{name}+{id}+{}", encode_base64(&typed[1..])),
        witness_key(1).to_string(),
        alice().public_key().to_string(),
        log_of("a"),
        log_of("ü.example/\u{10000}"),
        log_of(&"a".repeat(255)),
        log_of(&format!("a{}", "ü".repeat(127))),
        // Its base64 has a plus sign, as half of all have.
        (1..=255)
            .map(|n| spell("plus.example", KeyKind::Log, key(n).public_key()))
            .find(|text| text.matches('+').count() > 2)
            .expect("one of them"),
    ];
    // The id of a name that is not allowed does not matter.
    let bad =
        ["a b", "a\u{a0}b", "a\u{2028}", "a\u{85}", "\t", "a\u{202e}b", "a\u{3164}", "a\u{ad}", "a\u{200b}"];
    texts.extend(bad.map(|name| format!("{name}+{}+{encoded}", id_of(name))));
    texts.extend(
        [format!("{}a", "ü".repeat(128)), "a".repeat(256)]
            .map(|name| format!("{name}+{}+{encoded}", id_of(&name))),
    );
    // A signer's.
    texts.extend([alice(), bob()].map(|signer| spell("a.example", KeyKind::Log, signer.public_key())));
    texts
}

/// The id that the log's key would have under any name.
fn id_of(name: &str) -> String {
    use countersign_core::values::digest::Sha256;
    let named = [name.as_bytes(), b"\n\x01", key(100).public_key().as_bytes()].concat();
    Sha256::of(&named).to_string()[..8].to_owned()
}

/// Verifier keys in the place of the last witness's.
fn last_witnesses(first: &str) -> Vec<String> {
    let witness = |name: &str, n: u8| spell(name, KeyKind::Witness, key(n).public_key());
    vec![
        first.to_owned(),
        log_key().to_string(),
        witness(witness_key(1).name(), 111),
        witness("other.example", 101),
        witness("other.example", 100),
        witness(log_key().name(), 111),
        witness("a.example", 1),
        witness("a.example", 2),
        witness("a.example", 3),
    ]
}

/// The name gives two of these keys the same id.
fn twin(n: u32) -> String {
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&n.to_le_bytes());
    spell("twin.example", KeyKind::Witness, SecretKey::from_seed(&seed).public_key())
}
