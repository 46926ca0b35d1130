//! `countersign watch`: a line for each event, for as long as someone reads.

use serde_json::{Value, json};

use crate::support::hostile::{HostileServer, Lie, Victim};
use crate::support::html::short_key;
use crate::support::{
    Person, Running, SignersFile, World, client::Computer, metrics::free_address, signers::named_group,
};

/// A client that is told of everything that happens from now on.
fn watch(computer: &Computer, args: &[&str]) -> Running {
    let running = computer.start(&[&["watch"], args].concat());
    running.await_note("Watching http://");
    running
}

#[test]
fn each_event_is_a_line_until_an_interrupt_ends_it_well() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::start();
    let computer = Computer::of(&world.server);
    let mut everything = watch(&computer, &[]);
    let mut chosen = watch(&computer, &[&world.id("other"), "--type", "signature,activated"]);
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    world.activate("other/app", &SignersFile::of(1, &[&bob]), &[&bob]);
    for (kind, path, by) in [
        ("registration", world.pending_path("acme/app"), &alice),
        ("registration", world.pending_path("other/app"), &bob),
        ("signature", world.pending_path("other/app"), &bob),
        ("activated", world.active_path("other/app"), &bob),
    ] {
        let line = everything.next_line();
        let (time, rest) = line.split_once("  ").unwrap();
        assert!(countersign_core::values::time::Timestamp::parse(time).is_ok(), "{line}");
        let words: Vec<_> = rest.split_whitespace().collect();
        assert_eq!(words[..4], [kind, &path, "by", &short_key(by)]);
        if kind != "registration" {
            assert_eq!(chosen.next_line(), line);
        }
    }
    for running in [everything, chosen] {
        running.interrupt();
        assert_eq!(running.end(), (Some(0), String::new(), String::new()));
    }
}

#[test]
fn each_line_says_what_is_still_missing_and_from_whom() {
    let (alice, bob, carol) = (Person::named("alice"), Person::named("bob"), Person::named("carol"));
    let group = named_group(2, &["alice", "bob", "carol"]);
    let people = [&alice, &bob, &carol];
    let file = SignersFile::new().with("artifact_signers", group).revocation(2, &people);
    let world = World::with_project(&file, &people);
    let computer = Computer::of(&world.server);
    let newest = world.git().run(&["rev-parse", "main"]).trim().to_owned();
    let mut lines = watch(&computer, &[]);
    let mut objects = computer.start(&["watch", "--json", "--since", &newest]);
    let index = world.add_release(&alice, "acme/app/v1");
    let mut next = |kind: &str| {
        let (line, object) = (lines.next_line(), objects.next_line());
        let object: Value = serde_json::from_str(&object).unwrap();
        assert_eq!(object["type"], kind, "{object}");
        let said = object["progress"].as_str().unwrap_or_default().to_owned();
        assert!(line.trim_end().ends_with(&said) && line.contains("  has ") != said.is_empty(), "{line}");
        said
    };
    assert_eq!(next("release"), "has 0 of 2; 2 more from alice, bob or carol");
    world.sign(&alice, &index).ok();
    assert_eq!(next("signature"), "has 1 of 2; 1 more from bob or carol");
    world.sign(&carol, &index).ok();
    assert_eq!([next("signature"), next("complete")], ["", ""]);
    let document = world.revocation_of(&index, "key leaked");
    assert_eq!(world.revoke_with(&bob, &index, &document).status, 202);
    assert_eq!(next("revocation"), "has 1 of 2; 1 more from alice or carol");
}

#[test]
fn programs_get_an_object_for_each_event_and_what_was_missed() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let first = world.git().run(&["rev-list", "--max-parents=0", "main"]).trim().to_owned();
    let computer = Computer::of(&world.server);
    let mut running = computer.start(&["watch", "--json", "--since", &first]);
    for kind in ["registration", "signature", "activated"] {
        let event: Value = serde_json::from_str(&running.next_line()).unwrap();
        assert_eq!((&event["type"], &event["key"]), (&json!(kind), &json!(alice.key())));
        assert_eq!(event["commit"].as_str().map(str::len), Some(40), "{event}");
    }
    // `countersign watch | head` ends by itself, even if nothing happens any more.
    running.stop_reading();
    assert_eq!(running.end().0, Some(0));

    let unknown = "0123456789abcdef0123456789abcdef01234567";
    computer
        .run(&["watch", "--since", unknown])
        .failed(1)
        .says(&["does not have it", unknown, "without --since"]);
    Computer::offline().run(&["watch"]).failed(5);
}

#[test]
fn only_what_waits_for_a_key() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let computer = Computer::of(&world.server);
    let key = computer.key_of("bob").to_str().unwrap().to_owned();
    let mut mine = watch(&computer, &["--mine", "--key", &key]);
    let mut file = watch(&computer, &["--waiting-for", &format!("{key}.pub")]);
    world.add_release(&alice, "acme/app/v1");
    world.register(&bob, "acme/two", &SignersFile::of(2, &[&alice, &bob])).ok();
    for running in [&mut mine, &mut file] {
        let line = running.next_line();
        assert!(line.contains("registration") && line.contains(&world.pending_path("acme/two")), "{line}");
    }
    computer.run(&["watch", "--mine"]).failed(2).says(&["no key is given"]);
    computer.run(&["watch", "--mine", "--waiting-for", &bob.key()]).failed_as_usage();
    computer.run(&["watch", "--type", "moved"]).failed_as_usage();
    computer.run(&["watch", "--since", "main"]).failed_as_usage();
}

#[test]
fn a_restart_of_the_server_loses_nothing_and_repeats_nothing() {
    let alice = Person::named("alice");
    let mut world = World::start_with(|launch, _| launch.arg("--dev").at(free_address()));
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let mut running = watch(&Computer::of(&world.server), &[]);
    world.add_release(&alice, "acme/app/v1");
    assert!(running.next_line().contains("/acme/app/v1/"));
    world.server.restart();
    // Before the client is back, perhaps.
    world.add_release(&alice, "acme/app/v2");
    assert!(running.next_line().contains("/acme/app/v2/"));
    running.await_note("Connected again.");
    world.server.crash_and_restart();
    running.await_note("Connected again.");
    world.add_release(&alice, "acme/app/v3");
    assert!(running.next_line().contains("/acme/app/v3/"));
}

#[test]
fn a_lying_server_can_neither_draw_on_the_terminal_nor_fill_the_memory() {
    let hostile = HostileServer::alone();
    let victim = Victim::of(&hostile);
    let stream = |body: &str| Lie::bytes(body).with_header("content-type", "text/event-stream");
    let event = |path: &str| {
        let event = json!({
            "type": "release", "path": path, "key": null, "time": "2026-01-31T10:00:00Z", "commit": "0".repeat(40)
        });
        format!("event: release\ndata: {event}\n\n")
    };
    hostile.answer("/v1/events", stream(&event("https/a/443/\u{202e}fdp.exe\u{200b}")));
    let mut running = Computer::offline().start(&["watch", "--server", &hostile.url()]);
    let line = running.next_line();
    assert!(line.contains("\\u{202e}fdp.exe\\u{200b}") && !line.contains('\u{202e}'), "{line:?}");
    drop(running);
    for lie in [
        stream(&format!("data: {}", "x".repeat(1 << 20))),
        stream(&event("a/../b")),
        stream("data: {}\n\n"),
        stream("data: nothing\n\n"),
        stream("id: \u{1}\n\n"),
        stream("id: 12\n\n"),
        Lie::bytes("<!DOCTYPE html>").with_header("content-type", "text/html"),
        Lie::bytes("data: {}\n\n"),
        Lie::Endless,
    ] {
        hostile.be_honest();
        hostile.answer("/v1/events", lie);
        victim.run(&["watch"]).failed(3);
    }
}
