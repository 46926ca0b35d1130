//! A command over several things goes through all of them, and reports each (D218), also over a connection that breaks.
//! The rest is text (`client_several.txt`).

use serde_json::{Value, json};

use crate::support::{
    SignersFile, World, client::Computer, client::Ran, hostile::HostileServer, hostile::Lie, person,
    signers::named_group,
};

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

/// Both servers list the release. One cannot say who registered it, and the other's word stands beside its own listing.
#[test]
fn a_server_that_shows_nothing_of_a_project_does_not_hide_what_another_shows() {
    let [alice, bob] = ["alice", "bob"].map(person);
    let file = SignersFile::new().with("artifact_signers", named_group(2, &["alice", "bob"]));
    let world = World::with_project(&file, &[&alice, &bob]);
    let index = world.add_release(&alice, "acme/app/1.0");
    let broken = HostileServer::before(&world.server);
    broken.lie(|asked| asked.path.starts_with("/v1/state/").then(|| Lie::error(500, "broken")));
    let computer = Computer::of(&world.server);
    let (honest, project) = (format!("http://{}", world.server.address()), world.id("acme/app"));
    for (server, about, name) in
        [(&broken.url(), "--host", "other.example"), (&honest, "--project", project.as_str())]
    {
        Ran::of(&mut computer.newcomer(&["config", "set", "server", server, about, name])).ok();
    }
    let mut pending = computer.newcomer(&["pending"]);
    let ran = Ran::of(pending.env("COUNTERSIGN_KEY", computer.key_of("bob"))).ok();
    let blocks: Vec<&str> = ran.stdout.split(&format!("{index}\n")).skip(1).collect();
    let [unknown, known] = blocks.as_slice() else { panic!("{}", ran.stdout) };
    assert!(unknown.contains(&broken.url()) && unknown.contains("  by svc-pub:"), "{unknown}");
    assert!(known.contains(&honest) && known.contains("  by alice (svc-pub:"), "{known}");
}
