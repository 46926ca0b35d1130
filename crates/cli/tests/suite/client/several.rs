//! A command over several things goes through all of them, and reports each (D218), also over a connection that breaks. The
//! rest is text (`client_several.txt`).

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
    let requests: [Value; 3] = std::array::from_fn(|at| {
        let file = format!("{at}.json");
        computer.run(&["revoke", &indexes[at], "--export", &file]).ok();
        serde_json::from_slice(&computer.read(&file)).expect("JSON")
    });
    let [mut all, ..] = requests.clone();
    all["revocation_requests"] = requests.iter().map(|one| one["revocation_requests"][0].clone()).collect();
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
    let server = format!("http://{}", world.server.address());
    computer.run(&["config", "set", "server", &server, "--project", &world.id("acme/app")]).ok();
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
