//! `countersign status --wait`: ends when a file is complete, so that a CI job needs no polling loop.

use serde_json::json;

use crate::support::html::short_key;
use crate::support::{
    Person, Running, SignersFile, World,
    client::Computer,
    days_ago,
    metrics::free_address,
    objections::{veto_body, veto_document, withdraw},
    seconds_from_now,
    world::checksums,
};

fn people() -> (Person, Person) {
    (Person::named("alice"), Person::named("bob"))
}

/// A project of two, at an address that stays, and an unsigned release of it.
fn collecting() -> (World, Computer, String) {
    let (alice, bob) = people();
    let world = World::start_with(|launch, _| launch.arg("--dev").at(free_address()));
    world.activate("acme/app", &SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let index = world.add_release(&alice, "acme/app/v1");
    let computer = Computer::of(&world.server);
    (world, computer, index)
}

/// A client that waits, and has seen that it has to.
fn wait(computer: &Computer, path: &str) -> Running {
    let running = computer.start(&["status", "--wait", path]);
    running.await_note("signed by no one yet");
    running
}

#[track_caller]
fn assert_ends(running: Running, code: i32, words: &str) {
    let (ended, stdout, stderr) = running.end();
    assert_eq!(ended, Some(code), "{stdout}{stderr}");
    assert!(stdout.contains(words) || stderr.contains(words), "`{words}` is missing: {stdout}{stderr}");
    assert_eq!(stdout.is_empty(), code != 0, "{stdout}");
}

#[test]
fn it_ends_when_the_last_signature_is_there_and_needs_no_key() {
    let (alice, bob) = people();
    let (world, computer, index) = collecting();
    computer.run(&["status", "--wait", "--timeout", "1s", &index]).failed(6).says(&["the time is over"]);
    let running = wait(&computer, &index);
    world.sign(&alice, &index).ok();
    let progress = running.await_note(&short_key(&alice));
    assert!(progress.contains("1 of 2") || progress.contains("2 of 2"), "{progress}");
    world.sign(&bob, &index).ok();
    assert_ends(running, 0, "complete");
    // It is complete already.
    let told = computer.json(&["status", "--wait", &index]);
    assert_eq!(told, json!({ "file_path": index, "is_complete": true, "state": "complete" }));
    computer.run(&["status", "--timeout", "1s", &index]).failed_as_usage();
    for time in ["1", "s", "-1s", "1w", "99999999999d"] {
        computer.run(&["status", "--wait", &format!("--timeout={time}"), &index]).failed_as_usage();
    }
}

#[test]
fn what_was_revoked_or_replaced_is_not_waited_for() {
    let (alice, bob) = people();
    let (world, computer, index) = collecting();
    let running = wait(&computer, &index);
    world.files.put("/acme/app/v1/SHA256SUMS", checksums("other content"));
    world.register_assets(&alice, &[&world.files.url("/acme/app/v1/SHA256SUMS")]).ok();
    assert_ends(running, 7, "replaced");
    let second = world.add_release(&alice, "acme/app/v3");
    let running = wait(&computer, &second);
    withdraw(&world, &alice, &second).ok();
    assert_ends(running, 8, "was withdrawn");
    world.sign_all(&index, &[&alice, &bob]);
    world.revoke(&alice, &index).ok();
    computer.run(&["status", "--wait", &index]).failed(4).says(&["revoked"]);
    computer.run(&["status", "--wait", &world.index_path("acme/app/v2")]).failed(1);
    computer.run(&["status", "--wait", &world.active_path("acme/app")]).failed(2);
}

#[test]
fn proposed_signers_are_waited_for_until_they_are_in_force_replaced_or_dropped() {
    let (alice, bob) = people();
    let (mut world, computer, _) = collecting();
    let pending = world.pending_path("acme/app");
    // A job that comes too late to see them pending loses nothing.
    for name in [&pending, &world.id("acme/app"), "acme/app"] {
        computer.run(&["status", "--wait", name]).ok().says(&["in force"]);
    }
    let new = world.pending_path("acme/new");
    computer.run(&["status", "--wait", &new]).failed(1).says(&["no signers file is pending"]);
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    let running = wait(&computer, &pending);
    world.add_release(&alice, "acme/app/v2");
    world.sign_all(&pending, &[&alice, &bob]);
    assert_ends(running, 0, "in force");

    let propose = |world: &World, days| {
        let next = SignersFile::dated(days_ago(days)).artifact(1, &[&alice, &bob]);
        world.propose(&alice, "acme/app", &next).ok();
    };
    propose(&world, 3);
    let running = wait(&computer, &pending);
    propose(&world, 2);
    assert_ends(running, 7, "replaced");
    let running = wait(&computer, &pending);
    world.server.stop();
    let dropped = world.server.admin(&["drop", &world.id("acme/app")]).output();
    assert_eq!(dropped.status.code(), Some(0));
    world.server.start_again();
    assert_ends(running, 8, "dropped");
    // Masters veto what waits for its time.
    let team = SignersFile::of(1, &[&alice]).master(1, &[&bob]).with("rotation_delay_hours", json!(1));
    world.activate("acme/slow", &team, &[&alice, &bob]);
    let pending = world.pending_path("acme/slow");
    world.propose(&alice, "acme/slow", &SignersFile::dated(days_ago(3)).artifact(1, &[&alice])).ok();
    let running = wait(&computer, &pending);
    world.sign(&alice, &pending).ok();
    let document = veto_document(&world, "acme/slow", "keys were stolen", seconds_from_now(0));
    world.post_as(&bob, "/v1/veto", &veto_body(&bob, &pending, &document)).ok();
    assert_ends(running, 8, "keys were stolen");
}
