//! A command over several things goes through all of them, and reports each (D218), also over a connection that breaks.
//! The rest is text (`client_several.txt`).

use serde_json::{Value, json};

use crate::support::{SignersFile, World, client::Computer, hostile::HostileServer, hostile::Lie, person};

/// The connection breaks after some of several revocations: their answers are lost. The next try does the rest.
#[test]
fn after_a_broken_connection_a_repeated_submission_does_the_rest() {
    let [alice, bob] = ["alice", "bob"].map(person);
    let file = SignersFile::of(2, &[&alice, &bob]).revocation(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let computer = Computer::of(&world.server);
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
    assert_eq!(told["failed"].as_array().map(Vec::len), Some(1), "{told}");
    assert_eq!(
        (&told["failed"][0]["name"], &told["failed"][0]["kind"]),
        (&json!(indexes[1]), &json!("unreachable"))
    );
    assert!(world.exists(&format!("{}.revocation.json", indexes[2])), "the third was tried as well");
    assert!(!world.exists(&format!("{}.revocation.json", indexes[1])));
    computer.run_as("alice", &submit).ok().says(&["is revoked already", "Revoked"]);
    for index in &indexes {
        assert!(world.exists(&format!("{index}.revocation.json")), "{index}");
    }
    computer.run_as("bob", &submit).ok().says(&["is revoked already"]);
}
