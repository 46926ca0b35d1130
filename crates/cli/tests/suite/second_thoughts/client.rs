//! `countersign withdraw` and `countersign object`, and where the client shows what they did.

use crate::support::client::{Computer, add_files};
use crate::support::second_thoughts::{collecting, object, project, withdraw};
use crate::support::{SignersFile, days_ago, hostile::assert_harmless, person, world::checksums};

/// Clears the screen, turns text round, begins a line.
const EVIL: &str = "a\u{1b}[2J\rb\nc\u{202e}d\u{200b}\u{2066}e \"quoted\" <b>&amp;</b>";

#[test]
fn withdraw_asks_shows_and_says_who_may_not() {
    let (world, index) = collecting();
    let computer = Computer::of(&world.server);
    world.sign(&person("bob"), &index).ok();
    let args = ["withdraw", &index, "--reason", "the wrong tag"];
    let asked = computer.run_as("alice", &args).failed(2);
    asked.says(&["--yes", "Withdrawal of", "app.tar.gz", "1 signature", "the wrong tag", "sha512:"]);
    assert!(world.exists(&index));
    computer.run_as("alice", &["withdraw", &index]).failed_as_usage();
    let refused = computer.run_as("bob", &[&args[..], &["--yes"]].concat()).failed(1);
    refused.says(&["may not withdraw", "check --key"]);
    computer.run_as("alice", &[&args[..], &["--yes"]].concat()).ok().says(&["Withdrew"]);
    assert!(!world.exists(&index));
    let again = computer.json_as("alice", &[&args[..], &["--yes"]].concat());
    assert_eq!(again["withdrawn"], true);
    for command in [&["sign"][..], &["object", "--reason", "x"], &["revoke", "--reason", "x"]] {
        let late = computer.run_as("alice", &[command, &[&index, "--yes"]].concat()).failed(1);
        late.says(&["was withdrawn", &person("alice").key(), "the wrong tag"]);
    }
    computer.run(&["download", &index]).failed(3).says(&["was withdrawn", "the wrong tag"]);
    let never = world.index_path("acme/app/v9");
    computer.run_as("alice", &["withdraw", &never, "--reason", "x", "--yes"]).failed(1).says(&["has no"]);
    let pending = world.pending_path("acme/app");
    computer.run_as("alice", &["withdraw", &pending, "--reason", "x"]).failed_as_usage();
}

#[test]
fn a_complete_release_is_revoked_instead() {
    let world = project();
    let index = world.add_signed_release("acme/app/v1", &[&person("alice"), &person("bob")]);
    let computer = Computer::of(&world.server);
    let refused = computer.run_as("carol", &["withdraw", &index, "--reason", "x", "--yes"]).failed(1);
    refused.says(&["is complete", "countersign revoke"]);
}

#[test]
fn every_name_of_a_release_finds_it_also_when_it_is_withdrawn() {
    let (world, index) = collecting();
    let computer = Computer::of(&world.server);
    let project = world.id("acme/app");
    let dir = format!("{project}/v1");
    computer.run_as("carol", &["withdraw", &project, "v1", "--reason", "the wrong tag", "--yes"]).ok();
    let page = format!("http://{}/p/{index}", world.server.address());
    for name in [&[index.as_str()][..], &[dir.as_str()], &[project.as_str(), "v1"], &[page.as_str()]] {
        let shown = computer.run(&[&["status"], name].concat()).ok();
        shown.says(&["withdrawn", &person("carol").key(), "the wrong tag"]);
    }
    let told = computer.json(&["status", &index]);
    assert_eq!((told["withdrawn"].as_bool(), told["reason"].as_str()), (Some(true), Some("the wrong tag")));
    assert_eq!(told["withdrawn_by"], person("carol").key());
    // Another release in its place is what counts.
    world.add_release(&person("alice"), "acme/app/v1");
    computer.run(&["status", &project, "v1"]).ok().says(&["collecting"]).says_nothing_of(&["withdrawn"]);
}

#[test]
fn who_waits_learns_that_it_was_withdrawn() {
    let (world, index) = collecting();
    let computer = Computer::of(&world.server);
    let running = computer.start(&["status", "--wait", &index]);
    running.await_note("signed by no one yet");
    withdraw(&world, &person("alice"), &index).ok();
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(8), "{stderr}");
    assert!(stderr.contains("was withdrawn") && stderr.contains("the wrong tag"), "{stderr}");
}

#[test]
fn object_asks_signs_and_takes_back() {
    let (world, index) = collecting();
    let computer = Computer::of(&world.server);
    let reason = "linux-arm64 does not match my build";
    let args = ["object", &index, "--reason", reason];
    computer.run_as("bob", &args).failed(2).says(&["--yes", "Objection to", reason, "sha512:"]);
    computer.run_as("bob", &["object", &index]).failed_as_usage();
    computer.run_as("bob", &["object", &index, "--reason", "x", "--withdraw"]).failed_as_usage();
    computer.run_as("bob", &["object", &index, "--reason", "", "--yes"]).failed_as_usage();
    computer.run_as("bob", &["object", &index, "--withdraw", "--yes"]).failed(1).says(&["no objection"]);
    computer.run_as("mallory", &[&args[..], &["--yes"]].concat()).failed(1).says(&["check --key"]);
    computer.run_as("bob", &[&args[..], &["--yes"]].concat()).ok().says(&["Objected", "nothing is blocked"]);
    // At once, and as often as one likes: each word is later than the one before.
    let more = computer.json_as("bob", &["object", &index, "--reason", "nor amd64", "--yes"]);
    assert_eq!(more["objects"], true);
    computer.run(&["status", &index]).ok().says(&["1 OBJECTION", "nor amd64", &person("bob").key()]);
    let told = computer.json(&["status", &index]);
    assert_eq!(told["objections"][0]["objection"], "nor amd64");
    let back = computer.json_as("bob", &["object", &index, "--withdraw", "--yes"]);
    assert_eq!(back["objects"], false);
    computer.run(&["status", &index]).ok().says_nothing_of(&["OBJECTION", "nor amd64"]);
    assert!(world.exists(&index));
}

#[test]
fn signers_see_objections_before_anything_else() {
    let (world, index) = collecting();
    let computer = Computer::of(&world.server);
    object(&world, &person("carol"), &index, Some("not my build")).ok();
    let listed = computer.run_as("alice", &["pending"]).ok();
    listed.says(&["OBJECTION: not my build"]);
    let listed = computer.json_as("alice", &["pending"]);
    assert_eq!(listed["pending"][0]["objections"][0]["objection"], "not my build");
    let asked = computer.run_as("alice", &["sign", &index]).failed(2);
    let (objection, release) = (asked.stderr.find("OBJECTION"), asked.stderr.find("Release "));
    assert!(objection < release && objection.is_some(), "{asked:?}");
    asked.says(&["1 objection above", "not my build"]);
    // Without a network as well.
    computer.run(&["sign", &index, "--export", "request.json"]).ok();
    let offline = computer.run_as("alice", &["sign", "--detached", "request.json", "-o", "s.json", "--yes"]);
    offline.ok().says(&["1 OBJECTION", "not my build"]);
    computer.run_as("alice", &["sign", "--submit", "s.json"]).ok();
    assert_eq!(
        world.read_json(&format!("{index}.signatures.json.pending"))["entries"].as_object().unwrap().len(),
        1
    );
    // A correction begins anew.
    let url = world.publish_checksums("acme/app/v1", &checksums("corrected"));
    world.register_assets(&person("alice"), &[&url]).ok();
    computer.run_as("alice", &["sign", &index]).failed(2).says_nothing_of(&["OBJECTION"]);
}

#[test]
fn downloads_name_objections_and_go_on() {
    let world = project();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    object(&world, &bob, &index, Some("I should not have signed")).ok();
    let url = world.files.url("/acme/app/1.0/app");
    computer.download(&url).ok().says(&["OBJECTION", "I should not have signed"]);
    let verified = computer.json(&["verify", "app", "--url", &url]);
    assert_eq!(verified["objections"][0]["public_key"], bob.key());
    assert_eq!(verified["verified"], true);
    // Of someone who has left, it says so.
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice]).admin(1, &[&carol]);
    world.rotate("acme/app", &next, &[&carol]);
    computer.run(&["verify", "app", "--url", &url]).ok().says(&["no longer a signer"]);
    computer.run(&["status", &index]).ok().says(&["no longer a signer"]);
}

#[test]
fn hostile_texts_are_shown_harmlessly() {
    let (world, index) = collecting();
    let computer = Computer::of(&world.server);
    object(&world, &person("bob"), &index, Some(EVIL)).ok();
    for args in [&["status", index.as_str()][..], &["pending"]] {
        let ran = computer.run_as("alice", args).ok().says(&["\\u{1b}[2J", "\\u{202e}"]);
        assert_harmless(&ran);
    }
    let ran = computer.run_as("alice", &["sign", &index, "--yes"]).ok().says(&["\\u{1b}[2J"]);
    assert_harmless(&ran);
    let ran = computer.run_as("alice", &["withdraw", &index, "--reason", EVIL, "--yes"]).ok();
    assert_harmless(&ran);
    let ran = computer.run(&["status", &index]).ok().says(&["withdrawn", "\\u{1b}[2J"]);
    assert_harmless(&ran);
    let ran = computer.run_as("alice", &["withdraw", &index, "--reason", "x"]).ok();
    assert_harmless(&ran);
}

#[test]
fn help_says_that_a_signature_stays() {
    let computer = Computer::offline();
    for command in ["sign", "object"] {
        let help = computer.run(&[command, "--help"]).ok().stdout.replace('\n', " ");
        assert!(help.contains("anyone can submit it again"), "{help}");
    }
}

#[test]
fn an_objection_is_read_also_where_the_report_is_not() {
    let world = project();
    let signers = [&person("alice"), &person("bob")];
    let index = add_files(&world, "acme/app/v1", &[("app", b"content")], &signers);
    object(&world, &person("bob"), &index, Some("not built by us")).ok();
    let computer = Computer::of(&world.server);
    let quiet = computer.run(&["download", &world.files.url("/acme/app/v1/app"), "--quiet"]).ok();
    assert!(quiet.stdout.is_empty() && quiet.stderr.contains("not built by us"), "{quiet:?}");
}
