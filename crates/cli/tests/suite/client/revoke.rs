//! `countersign revoke`: alone, together, and what everyone sees afterwards.

use serde_json::json;

use crate::support::{SignersFile, World, client::Computer, client::add_files, person};

/// A release of alice's; two of rita, ron and ruth revoke it.
fn released() -> (World, Computer, String) {
    let (alice, rita, ron, ruth) = (person("alice"), person("rita"), person("ron"), person("ruth"));
    let file = SignersFile::of(1, &[&alice]).revocation(2, &[&rita, &ron, &ruth]);
    let world = World::with_project(&file, &[&alice, &rita, &ron, &ruth]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice]);
    let computer = Computer::of(&world.server);
    (world, computer, index)
}

fn url(world: &World) -> String {
    world.files.url("/acme/app/1.0/app")
}

#[test]
fn one_admin_is_enough_where_no_revocation_keys_are_listed() {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    computer
        .run_as("bob", &["revoke", &index, "--reason", "bad build"])
        .failed(2)
        .says(&["--yes", "bad build"]);
    assert!(world.is_complete(&alice, &index));
    let shown = computer.run_as("bob", &["revoke", &index, "--reason", "bad build", "--yes"]).ok();
    shown.says(&[&index, &world.id("acme/app"), "app", "bad build", "Revoked"]);
    let document = world.read_json(&format!("{index}.revocation.json"));
    assert_eq!(document["reason"], "bad build");
    assert!(
        document["subject_digest"].as_str().is_some_and(|digest| digest.starts_with("sha512:")),
        "{document}"
    );
    computer.download(&url(&world)).failed(4).says(&["bad build"]);
    let again = computer.run_as("alice", &["revoke", &index, "--reason", "bad build", "--yes"]).ok();
    again.says(&["is revoked already"]);
}

#[test]
fn others_join_without_a_reason_or_with_the_same_one() {
    for reason in [None, Some("key leaked")] {
        let (world, computer, index) = released();
        let first = computer.json_as("rita", &["revoke", &index, "--reason", "key leaked", "--yes"]);
        assert_eq!(first["revoked"], false);
        computer.download(&url(&world)).ok();
        computer.run(&["status", &index]).ok();
        let mut args = vec!["revoke", &index, "--yes"];
        args.extend(reason.iter().flat_map(|reason| ["--reason", reason]));
        let joined = computer.run_as("ron", &args).ok().says(&["key leaked", "Revoked"]);
        let told: Vec<&str> = joined.stdout.lines().collect();
        assert_eq!(told[0], format!("Revoked {index}"));
        assert!(told.len() == 2 && told[1].contains("witnesses"), "{told:?}");
        computer.download(&url(&world)).failed(4).says(&["key leaked"]);
    }
}

#[test]
fn a_differing_reason_is_refused_and_signs_nothing() {
    let (world, computer, index) = released();
    let began = computer.run_as("rita", &["revoke", &index, "--reason", "key leaked", "--yes"]).ok();
    began.says(&["More signatures", "countersign revoke"]);
    let refused = computer.run_as("ron", &["revoke", &index, "--reason", "bad build", "--yes"]).failed(1);
    refused.says(&["key leaked", "--reason"]);
    computer.download(&url(&world)).ok();
    computer.run_as("ruth", &["revoke", &index, "--yes"]).ok().says(&["Revoked"]);
}

/// Before anything is shown or asked.
#[test]
fn who_has_revoked_it_is_told_so() {
    let (_world, computer, index) = released();
    computer.run_as("alice", &["revoke", &index, "--reason", "x", "--yes"]).failed(1).says(&["check --key"]);
    computer.run_as("rita", &["revoke", &index, "--reason", "key leaked", "--yes"]).ok();
    for args in [&["revoke", &index][..], &["revoke", &index, "--reason", "key leaked"]] {
        let again = computer.run_as("rita", args).ok();
        again.says(&["You signed the revocation", "more signatures are needed"]).says_nothing_of(&["digest"]);
    }
    computer.run_as("ruth", &["revoke", &index, "--yes"]).ok();
    let late = computer.run_as("ron", &["revoke", &index, "--reason", "bad build"]).ok();
    late.says(&["is revoked already", "key leaked"]).says_nothing_of(&["digest"]);
}

#[test]
fn a_status_tells_of_a_revocation_that_has_begun() {
    let (_world, computer, index) = released();
    computer.run_as("rita", &["revoke", &index, "--reason", "key leaked", "--yes"]).ok();
    // Otherwise no one learns that a co-signature is missing.
    computer.run(&["status", &index]).ok().says(&["key leaked"]);
}

#[test]
fn only_a_revoker_revokes() {
    let (world, computer, index) = released();
    computer.run_as("alice", &["revoke", &index, "--reason", "mine", "--yes"]).failed(1);
    computer.run_as("mallory", &["revoke", &index, "--reason", "mine", "--yes"]).failed(1);
    assert!(!world.exists(&format!("{index}.revocation.json.pending")));
    computer.download(&url(&world)).ok();
}

#[test]
fn a_first_revocation_needs_a_reason_of_a_sensible_length() {
    let (world, computer, index) = released();
    computer.run_as("rita", &["revoke", &index, "--yes"]).failed(2).says(&["--reason"]);
    computer.run_as("rita", &["revoke", &index, "--reason", "", "--yes"]).failed(2).says(&["--reason"]);
    computer.run_as("rita", &["revoke", &index, "--reason", &"x".repeat(1001), "--yes"]).failed(2);
    assert!(!world.exists(&format!("{index}.revocation.json.pending")));
    computer.run_as("rita", &["revoke", &index, "--reason", &"ü".repeat(1000), "--yes"]).ok();
}

#[test]
fn only_complete_releases_can_be_revoked() {
    let (world, computer, index) = released();
    let collecting = world.add_release(&person("alice"), "acme/app/2.0");
    let args = ["--reason", "too early", "--yes"];
    computer.run_as("rita", &[&["revoke", &collecting], &args[..]].concat()).failed(1).says(&["signed"]);
    let signers = world.active_path("acme/app");
    computer.run_as("rita", &[&["revoke", &signers], &args[..]].concat()).failed(2).says(&["update"]);
    let nowhere = world.index_path("acme/app/9.9");
    computer.run_as("rita", &[&["revoke", &nowhere], &args[..]].concat()).failed(1).says(&[&nowhere]);
    computer.run(&["status", &index]).ok().says(&["complete"]);
}

#[test]
fn a_revocation_is_code_4_for_those_who_meet_the_project_for_the_first_time() {
    let (world, computer, index) = released();
    for name in ["rita", "ron"] {
        let args: &[&str] = if name == "rita" { &["--reason", "key leaked"] } else { &[] };
        computer.run_as(name, &[&["revoke", &index, "--yes"], args].concat()).ok();
    }
    let newcomer = Computer::of(&world.server);
    newcomer.download(&url(&world)).failed(4).says(&["key leaked"]);
    let error = newcomer.run(&["download", &url(&world), "--json"]).json_error(4);
    assert_eq!(error["kind"], "revoked");
    newcomer.write("app", "content");
    newcomer.run(&["verify", "app", "--url", &url(&world)]).failed(4);
    newcomer.run(&["bundle", &url(&world), "-o", "b.json"]).failed(4);
    assert_eq!(newcomer.listing(), ["app"]);
    let seen = &newcomer.pins()["projects"][world.id("acme/app")]["revocations"];
    assert_eq!(seen[&index]["reason"], "key leaked");
    let status = newcomer.json(&["status", &index]);
    assert_eq!((&status["revoked"], &status["is_complete"]), (&json!(true), &json!(false)));
}
