//! A command over several things goes through all of them, and reports each (D218).

use serde_json::{Value, json};

use crate::support::client::{Computer, Ran};
use crate::support::{SignersFile, World, hostile::HostileServer, hostile::Lie, person};

/// Any two of alice, bob and carol sign, and any two revoke.
fn start() -> (World, Computer) {
    let people = ["alice", "bob", "carol"].map(person);
    let [alice, bob, carol] = &people;
    let file = SignersFile::of(2, &[alice, bob, carol]).revocation(2, &[alice, bob, carol]);
    let world = World::with_project(&file, &[alice, bob, carol]);
    let computer = Computer::of(&world.server);
    (world, computer)
}

/// The paths in a list of things that were done or not.
#[track_caller]
fn paths(list: &Value, field: &str) -> Vec<String> {
    let list = list.as_array().unwrap_or_else(|| panic!("{list} is no list"));
    list.iter().map(|one| one[field].as_str().expect("a path").to_owned()).collect()
}

/// Exports releases, and has someone sign them where there is no network.
#[track_caller]
fn sign_detached(computer: &Computer, who: &str, indexes: &[String]) {
    let names: Vec<&str> = indexes.iter().map(String::as_str).collect();
    computer.run(&[&["sign"], &names[..], &["--export", "request.json"]].concat()).ok();
    let signing = ["sign", "--detached", "request.json", "-o", "signed.json", "--yes"];
    computer.run_as(who, &signing).ok();
}

#[test]
fn all_signatures_are_submitted_and_what_others_have_completed_counts_as_done() {
    let (world, computer) = start();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let indexes: Vec<String> =
        ["1.0", "1.1", "1.2", "1.3"].map(|tag| world.add_release(&alice, &format!("acme/app/{tag}"))).into();
    sign_detached(&computer, "carol", &indexes);
    // Meanwhile: complete without her, half signed, withdrawn, and submitted before.
    world.sign_all(&indexes[0], &[&alice, &bob]);
    world.sign(&alice, &indexes[1]).ok();
    computer.run_as("alice", &["withdraw", &indexes[2], "--reason", "wrong files", "--yes"]).ok();
    world.sign(&carol, &indexes[3]).ok();
    let submit = ["sign", "--submit", "signed.json"];
    let told = computer.run_as("alice", &[&submit[..], &["--json"]].concat()).json_error(10);
    assert_eq!(told["kind"], json!("incomplete"), "{told}");
    let done = [&indexes[0], &indexes[1], &indexes[3]].map(String::clone);
    assert_eq!(paths(&told["signed"], "file_path"), done);
    assert_eq!(paths(&told["failed"], "name"), [indexes[2].clone()]);
    assert!(told["failed"][0]["status"].is_number(), "{told}");
    let was_done: Vec<&Value> =
        told["signed"].as_array().unwrap().iter().map(|one| &one["was_done"]).collect();
    assert_eq!(was_done, [&json!(true), &Value::Null, &json!(true)]);
    assert!(world.is_complete(&alice, &indexes[1]), "those behind a refusal are done as well");
    // Once more: nothing new, and the same report.
    let shown = computer.run_as("alice", &submit).failed_with(10);
    shown.says(&["1 of 4 could not be done", &indexes[2], "Nothing is left to submit"]);
}

#[test]
fn all_named_releases_are_signed_though_one_in_the_middle_cannot_be() {
    let (world, computer) = start();
    let [alice, bob] = ["alice", "bob"].map(person);
    let first = world.add_release(&alice, "acme/app/1.0");
    let revoked = world.add_signed_release("acme/app/1.1", &[&alice, &bob]);
    let document = world.revocation_of(&revoked, "bad");
    for (person, status) in [(&alice, 202), (&bob, 200)] {
        assert_eq!(world.revoke_with(person, &revoked, &document).status, status);
    }
    let last = world.add_release(&alice, "acme/app/1.2");
    let missing = world.index_path("acme/app/9.9");
    let names = [first.as_str(), &revoked, &missing, &last];
    let signing = [&["sign"], &names[..], &["--yes"]].concat();
    let told = computer.run_as("carol", &[&signing[..], &["--json"]].concat()).json_error(10);
    assert_eq!(paths(&told["signed"], "file_path"), [first.clone(), last.clone()]);
    assert_eq!(told["failed"].as_array().map(Vec::len), Some(2), "{told}");
    computer.run_as("carol", &signing).failed_with(10).says(&["You signed", "2 of 4 could not be done"]);
    // What is left to sign elsewhere is exported all the same.
    let export = [&["sign"], &names[..], &["--export", "request.json"]].concat();
    computer.run(&export).failed_with(10).says(&["Wrote 2 files", "REVOKED"]);
    computer.run_as("bob", &["sign", "--detached", "request.json", "-o", "signed.json", "--yes"]).ok();
    computer.run_as("bob", &["sign", "--submit", "signed.json"]).ok().says(&["complete"]);
    // One thing alone fails as itself, and so do several that fail for one kind of reason.
    computer.run_as("carol", &["sign", &revoked, "--yes"]).failed(4);
    computer.run_as("carol", &["sign", &revoked, &revoked, "--yes"]).failed(4);
}

/// The connection breaks after some of several revocations: their answers are lost. The next try does the rest.
#[test]
fn after_a_broken_connection_a_repeated_submission_does_the_rest() {
    let (world, computer) = start();
    let [alice, bob] = ["alice", "bob"].map(person);
    let indexes: Vec<String> = ["1.0", "1.1", "1.2"]
        .map(|tag| world.add_signed_release(&format!("acme/app/{tag}"), &[&alice, &bob]))
        .into();
    for index in &indexes {
        let document = world.revocation_of(index, "bob's laptop was stolen");
        assert_eq!(world.revoke_with(&bob, index, &document).status, 202);
    }
    let requests: Vec<Value> = indexes
        .iter()
        .map(|index| {
            computer.run(&["revoke", index, "--export", "one.json"]).ok();
            let request = serde_json::from_slice(&computer.read("one.json")).expect("JSON");
            std::fs::remove_file(computer.path("one.json")).expect("it was written");
            request
        })
        .collect();
    let mut all: Value = requests[0].clone();
    let (field, _) =
        all.as_object().and_then(|all| all.iter().find(|(_, one)| one.is_array())).expect("a list");
    let field = field.clone();
    all[&field] = requests.iter().flat_map(|one| one[&field].as_array().expect("a list").clone()).collect();
    computer.write("requests.json", all.to_string());
    computer.run_as("alice", &["revoke", "--detached", "requests.json", "-o", "signed.json", "--yes"]).ok();
    let between = HostileServer::before(&world.server);
    let second = indexes[1].clone();
    between.lie(move |asked| {
        let is_second = asked.body.contains(&second);
        (asked.path == "/v1/revoke" && is_second).then_some(Lie::HungUp)
    });
    let submit = ["revoke", "--submit", "signed.json"];
    let told = computer.run_as("alice", &[&submit[..], &["--server", &between.url(), "--json"]].concat());
    let told = told.json_error(10);
    assert_eq!(paths(&told["failed"], "name"), [indexes[1].clone()], "{told}");
    assert_eq!(told["failed"][0]["kind"], json!("unreachable"));
    assert!(world.exists(&format!("{}.revocation.json", indexes[2])), "the third was tried as well");
    assert!(!world.exists(&format!("{}.revocation.json", indexes[1])));
    computer.run_as("alice", &submit).ok().says(&["is revoked already", "Revoked"]);
    for index in &indexes {
        assert!(world.exists(&format!("{index}.revocation.json")), "{index}");
    }
    computer.run_as("bob", &submit).ok().says(&["is revoked already"]);
}

/// Another server that this computer knows is gone. What waits on this one is told and signed all the same.
#[test]
fn a_server_that_is_gone_does_not_hide_what_waits_on_another() {
    let (world, computer) = start();
    let index = world.add_release(&person("alice"), "acme/app/1.0");
    computer
        .run(&[
            "config",
            "set",
            "server",
            &format!("http://{}", world.server.address()),
            "--project",
            &world.id("acme/app"),
        ])
        .ok();
    let gone = format!("http://{}", crate::support::metrics::free_address());
    computer.run(&["config", "set", "server", &gone, "--host", "gone.example"]).ok();
    let ask = |args: &[&str]| {
        let mut command = computer.newcomer(args);
        Ran::of(command.env("COUNTERSIGN_KEY", computer.key_of("bob")))
    };
    ask(&["pending"]).failed_with(10).says(&[&index, "1 of 2 could not be done", &gone]);
    let told = ask(&["pending", "--json"]).json_error(10);
    assert_eq!(told["file_paths"], json!([index]));
    let told = ask(&["sign", "--all", "--yes", "--json"]).json_error(10);
    assert_eq!(paths(&told["signed"], "file_path"), [index]);
    assert_eq!(paths(&told["failed"], "name"), [gone]);
}
