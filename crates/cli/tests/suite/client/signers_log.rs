//! The log and the witnesses of a signers file: two keys of one witness, and a hostile name. The rest is text
//! (`client_signers.txt`).

use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_testing::{key, log_key, ml_dsa_key, witness_key};
use serde_json::{Value, json};

use crate::support::client::{Computer, Ran};
use crate::support::{Person, SignersFile, World, html::open};

fn witnesses() -> [String; 3] {
    [1, 2, 3].map(|n| witness_key(n).to_string())
}

/// Two of three witnesses, a day.
fn transparency() -> Value {
    json!({
        "log": log_key().to_string(),
        "witnesses": [{ "threshold": 2, "keys": witnesses() }],
        "max_age_seconds": 86_400,
    })
}

fn file() -> SignersFile {
    SignersFile::of(2, &[&Person::named("alice"), &Person::named("bob")]).with("transparency", transparency())
}

fn edit(computer: &Computer, args: &[&str]) -> Ran {
    computer.run(&[&["signers", "edit", "s.json"], args].concat())
}

/// The object in the file that was printed.
#[track_caller]
fn printed(ran: &Ran) -> Value {
    let file: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    file["transparency"].clone()
}

#[test]
fn a_witness_with_two_keys_counts_once_and_is_named_once() {
    let computer = Computer::offline();
    computer.write("s.json", file().bytes());
    let [a, b, _] = witnesses();
    let second = ml_dsa_key(witness_key(1).name(), 9).to_string();
    let name = |threshold| {
        edit(&computer, &["--witness", &a, &second, &b, "--witness-threshold", threshold, "-o", "two.json"])
    };
    name("3").failed(2).says(&["--witness-threshold", "between 1 and 2"]);
    name("2").ok().says(&["any 2 of 2 witnesses", "the log and at least 2 witnesses"]);
    let edit = |option: &str| computer.run(&["signers", "edit", "two.json", option, witness_key(1).name()]);
    let printed = printed(&edit("--replaying").ok());
    let replaying = |key: &str| json!({ "key": key, "replaying": true });
    assert_eq!(printed["witnesses"][0]["keys"], json!([replaying(&a), replaying(&second), b]));
    edit("--not-replaying").failed(2).says(&["nothing changes"]);
}

#[test]
fn the_name_of_a_log_is_text_on_pages_and_quoted_in_the_terminal() {
    let alice = Person::named("alice");
    let name = "<script>alert(1)</script>.example,(and";
    let log = VerifierKey::new(name, KeyKind::Log, key(99).public_key()).unwrap().to_string();
    let file = SignersFile::of(1, &[&alice]).with("transparency", json!({ "log": log }));
    let world = World::start();
    world.register(&alice, "acme/app", &file).ok();
    for path in [world.id("acme/app"), world.pending_path("acme/app")] {
        let page = open(&world.server, &format!("/p/{path}"));
        assert!(!page.text.contains("<script>alert") && page.text.contains("&lt;script&gt;alert"), "{path}");
    }
    let reviewed = Computer::of(&world.server).run_as("alice", &["sign", "--all", "--yes"]).ok();
    reviewed.says(&[&format!("log: \"{log}\"; no witnesses")]);
}
