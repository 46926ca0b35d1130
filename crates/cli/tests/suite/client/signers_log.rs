//! The log and the witnesses of a signers file: made, edited, checked, proposed, signed, and used.

use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_testing::{key, log_key, ml_dsa_key, witness_key};
use serde_json::{Value, json};

use crate::support::client::{Computer, Ran};
use crate::support::{Person, SignersFile, World, days_ago, fsck::fsck, html::open};

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

#[test]
fn a_server_registers_serves_and_rotates_it_and_pages_show_it() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::start();
    let bad = file().with("transparency", json!({ "log": "x" }));
    world.files.put("/acme/app/svc.signers.json", bad.bytes());
    let url = world.files.url("/acme/app/svc.signers.json");
    world.register_url(&alice, &url).refused(500, "transparency.log");

    let plain = file().without("transparency");
    world.activate("acme/app", &plain, &[&alice, &bob]);
    let project = format!("/p/{}", world.id("acme/app"));
    open(&world.server, &project).lacks(&["Witnesses", "sign.example.org/log"]);

    let next = plain.redated(days_ago(5)).with("transparency", transparency());
    world.propose(&alice, "acme/app", &next).ok();
    let pending = world.pending_path("acme/app");
    let facts = ["any 2 of 3 witnesses", "1 day", "the log and at least 1 witness"];
    open(&world.server, &format!("/p/{pending}"))
        .says(&["log: sign.example.org/log+", "a proof can be at most 1 day old", "Oldest proof that counts"])
        .says(&facts);
    let computer = Computer::of(&world.server);
    let reviewed = computer.run_as("alice", &["sign", "--all", "--yes"]).ok();
    reviewed.says(&["log: sign.example.org/log+", "any 2 of 3 witnesses", "at most 1 day old"]);
    world.sign(&bob, &pending).ok();

    assert_eq!(world.read(&world.active_path("acme/app")), next.bytes());
    let page = open(&world.server, &project);
    page.says(&["Log that proves the newest state", &log_key().to_string(), &witness_key(3).to_string()])
        .says(&facts);
    let ran = computer.run(&["signers", "edit", &world.id("acme/app"), "--max-age", "2d"]).ok();
    assert_eq!(printed(&ran)["max_age_seconds"], 2 * 86_400);
    ran.says(&["WEAKER: a proof can be 2 days old; before, 1 day"]);
    computer.run(&["signers", "history", &world.id("acme/app")]).ok();
    fsck(&world.server.repository(), &[]).is_clean();
}
