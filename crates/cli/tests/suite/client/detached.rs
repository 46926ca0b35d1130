//! Signing on a computer without a network: export, detached, submit.

use serde_json::json;

use crate::support::{SignersFile, World, client::Computer, client::put_release, person};

/// A project of alice and bob with an unsigned release, exported by bob for alice; the index.
#[track_caller]
fn exported() -> (World, Computer, String) {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let sums = put_release(&world.files, "acme/app/1.0", &[("app", b"content")]);
    let connected = Computer::of(&world.server);
    connected.run_as("bob", &["release", "--checksums", &sums]).ok();
    let index = world.index_path("acme/app/1.0");
    connected
        .run_as("bob", &["sign", &index, "--export", "export.json"])
        .ok()
        .says(&["export.json", "--detached"]);
    (world, connected, index)
}

#[track_caller]
fn carry(from: &Computer, to: &Computer, name: &str) {
    to.write(name, from.read(name));
}

#[test]
fn a_release_is_signed_without_a_network_and_submitted_by_somebody_else() {
    let (mut world, connected, index) = exported();
    assert_eq!(world.pending(&person("bob")), [index.as_str()], "exporting signs nothing");
    let offline = Computer::offline();
    carry(&connected, &offline, "export.json");
    world.server.stop();
    let args = ["sign", "--detached", "export.json", "-o", "signatures.json"];
    offline.run_as("alice", &args).failed(2).says(&["--yes", &index, "app", "sha256:"]);
    assert_eq!(offline.listing(), ["export.json"]);
    let shown = offline.run_as("alice", &[&args[..], &["--yes"]].concat()).ok();
    let digest = countersign_core::values::digest::Sha256::of(b"content").to_string();
    shown.says(&[&index, &world.id("acme/app"), "app", &digest, "2 of 2", "signatures.json", "--submit"]);

    world.server.start_again();
    let connected_again = Computer::of(&world.server);
    carry(&offline, &connected_again, "signatures.json");
    let submitted = connected_again.run_as("bob", &["sign", "--submit", "signatures.json"]).ok();
    submitted.says(&[&person("alice").key(), &index]);
    assert_eq!(world.pending(&person("alice")), [""; 0]);
    connected_again.run_as("bob", &["sign", &index, "--yes"]).ok().says(&["complete"]);
    // Again: it is there, and counts once.
    connected_again.run_as("bob", &["sign", "--submit", "signatures.json"]).ok().says(&[&index]);
}

#[test]
fn programs_get_json_at_each_step() {
    let (world, connected, index) = exported();
    let export = connected.json_as("bob", &["sign", "--all", "--export", "again.json"]);
    assert_eq!(export["file_paths"], json!([index]));
    let offline = Computer::offline();
    carry(&connected, &offline, "export.json");
    let args = ["sign", "--detached", "export.json", "-o", "signatures.json", "--yes"];
    let signed = offline.json_as("alice", &args);
    assert_eq!(
        (&signed["public_key"], &signed["file_paths"]),
        (&json!(person("alice").key()), &json!([index]))
    );
    carry(&offline, &connected, "signatures.json");
    let submitted = connected.json_as("bob", &["sign", "--submit", "signatures.json"]);
    let expected = json!([{ "file_path": index, "public_key": person("alice").key(), "is_complete": false }]);
    assert_eq!(submitted["signed"], expected);
    assert_eq!(world.pending(&person("alice")), [""; 0]);
}

#[test]
fn everything_that_waits_is_exported_and_signed_together() {
    let (world, connected, first) = exported();
    let sums = put_release(&world.files, "acme/app/2.0", &[("app", b"new")]);
    connected.run_as("bob", &["release", "--checksums", &sums]).ok();
    connected.run_as("bob", &["sign", "--all", "--export", "all.json"]).ok();
    let offline = Computer::offline();
    carry(&connected, &offline, "all.json");
    let signed = ["sign", "--detached", "all.json", "-o", "signatures.json", "--yes"];
    offline.run_as("alice", &signed).ok().says(&[&first, &world.index_path("acme/app/2.0")]);
    carry(&offline, &connected, "signatures.json");
    connected.run_as("bob", &["sign", "--submit", "signatures.json"]).ok();
    assert_eq!(world.pending(&person("alice")), [""; 0]);
}

#[test]
fn a_proposal_is_shown_offline_as_it_is_online() {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let next = SignersFile::dated(crate::support::days_ago(5)).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    let (connected, offline) = (Computer::of(&world.server), Computer::offline());
    let pending = world.pending_path("acme/app");
    connected.run_as("alice", &["sign", &pending, "--export", "export.json"]).ok();
    carry(&connected, &offline, "export.json");
    let signed = ["sign", "--detached", "export.json", "-o", "signatures.json", "--yes"];
    let offline_shown = offline.run_as("bob", &signed).ok();
    let online_shown = connected.run_as("alice", &["sign", &pending, "--yes"]).ok();
    let shown: Vec<_> = online_shown.stderr.lines().filter(|line| !line.starts_with("Signed")).collect();
    assert!(shown.len() > 5, "{shown:?}");
    // All but which of them the reader is.
    let told = offline_shown.stderr.replace(" (you)", "");
    for line in shown {
        let line = line.replace(" (you)", "");
        assert!(told.contains(&line), "{line:?} is missing: {offline_shown:?}");
    }
    carry(&offline, &connected, "signatures.json");
    let submitted = connected.json_as("alice", &["sign", "--submit", "signatures.json"]);
    assert_eq!(submitted["signed"][0]["is_complete"], true);
}

#[test]
fn own_files_are_compared_offline_too() {
    let (_world, connected, _) = exported();
    let offline = Computer::offline();
    carry(&connected, &offline, "export.json");
    offline.write("built/app", "Content");
    let args =
        ["sign", "--detached", "export.json", "-o", "s.json", "--yes", "--files", "built", "--require-match"];
    offline.run_as("alice", &args).failed(3).says(&["1 differ"]);
    assert!(!offline.path("s.json").exists());
    offline.write("built/app", "content");
    offline.run_as("alice", &args).ok().says(&["1 match"]);
}

#[test]
fn only_a_signer_signs_offline() {
    let (_world, connected, _) = exported();
    let offline = Computer::offline();
    carry(&connected, &offline, "export.json");
    let args = ["sign", "--detached", "export.json", "-o", "s.json", "--yes"];
    offline.run_as("mallory", &args).failed(1).says(&[&person("mallory").key()]);
    assert!(!offline.path("s.json").exists());
}

#[test]
fn a_changed_or_foreign_export_is_refused() {
    let (_world, connected, _) = exported();
    let offline = Computer::offline();
    let export = String::from_utf8(connected.read("export.json")).unwrap();
    let args = ["sign", "--detached", "export.json", "-o", "s.json", "--yes"];
    offline.run_as("alice", &args).failed(1).says(&["export.json"]);
    for text in ["", "{}", "[]", "not JSON", &export.replacen("1.0", "1.1", 1), &export[..export.len() / 2]] {
        offline.write("export.json", text);
        let ran = offline.run_as("alice", &args);
        assert!(ran.code == 1 || ran.code == 3, "{text:?}: {ran:?}");
        assert!(ran.stderr.contains("hint: ") && !offline.path("s.json").exists(), "{text:?}: {ran:?}");
    }
    // An export is not a set of signatures, nor the other way round.
    offline.write("export.json", &export);
    offline.run_as("alice", &args).ok();
    connected.write("s.json", offline.read("s.json"));
    connected.run_as("bob", &["sign", "--submit", "export.json"]).failed(1).says(&["--detached"]);
    offline
        .run_as("alice", &["sign", "--detached", "s.json", "-o", "x.json", "--yes"])
        .failed(1)
        .says(&["--export"]);
}

#[test]
fn an_export_of_nothing_does_not_pretend_that_there_is_something() {
    let (world, connected, index) = exported();
    world.sign_all(&index, &[&person("alice"), &person("bob")]);
    let ran = connected.run_as("bob", &["sign", "--all", "--export", "none.json"]);
    ran.says(&["Nothing"]).says_nothing_of(&["--detached"]);
}
