//! `countersign sign`: what is shown before a signature is made, and the comparison with one's own files.

use serde_json::json;

use crate::support::{SignersFile, World, client::Computer, client::put_release, person};

const FILES: [(&str, &[u8]); 3] = [("app", b"content"), ("sub/lib", b"library"), ("notes", b"")];

/// A project of alice and bob, both needed, with an unsigned release; its index.
#[track_caller]
fn unsigned() -> (World, Computer, String) {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let sums = put_release(&world.files, "acme/app/1.0", &FILES);
    let computer = Computer::of(&world.server);
    computer.run_as("alice", &["release", "--checksums", &sums]).ok();
    let index = world.index_path("acme/app/1.0");
    (world, computer, index)
}

/// The release as it was built at home, in the directory `built`.
fn build(computer: &Computer) {
    for (name, bytes) in FILES {
        computer.write(&format!("built/{name}"), bytes);
    }
}

#[test]
fn a_release_is_shown_with_its_project_files_and_digests() {
    let (world, computer, index) = unsigned();
    let shown = computer.run_as("alice", &["sign", &index, "--yes"]).ok();
    let digests = FILES.map(|(_, bytes)| countersign_core::values::digest::Sha256::of(bytes).to_string());
    let shown = shown.says(&[&world.id("acme/app"), &index, "app", "sub/lib", "notes", "2 of 2"]);
    let shown = shown.says(&[&digests[0], &digests[1], &digests[2]]);
    shown.says_nothing_of(&["match", "differ"]);
    // The second signer sees who has signed.
    computer.run_as("bob", &["sign", &index, "--yes"]).ok().says(&[&person("alice").key(), "complete"]);
}

#[test]
fn without_a_terminal_and_without_yes_nothing_is_signed() {
    let (world, computer, index) = unsigned();
    for args in [&["sign", &index][..], &["sign", "--all"], &["sign", &index, "--quiet"]] {
        computer.run_as("alice", args).failed(2).says(&["--yes", "app", &index]);
    }
    computer.run_as("alice", &["sign", "--all", "--json"]).json_error(2);
    assert_eq!(world.pending(&person("alice")), [index.as_str()]);
}

#[test]
fn quiet_shows_what_a_question_is_about_and_nothing_where_none_is_asked() {
    let (_world, computer, index) = unsigned();
    computer.run_as("alice", &["sign", &index, "--quiet"]).failed(2).says(&[&index, "sub/lib", "sha256:"]);
    let signed = computer.run_as("alice", &["sign", &index, "--yes", "--quiet"]).ok();
    assert_eq!((signed.stdout.as_str(), signed.stderr.as_str()), ("", ""));
    // What --files asks for is told.
    build(&computer);
    computer.write("built/app", "Content");
    let args = ["sign", &index, "--yes", "--quiet", "--files", "built"];
    computer.run_as("bob", &args).ok().says(&["app DIFFERS"]);
}

#[test]
fn with_json_what_is_signed_is_shown_too() {
    let (world, computer, index) = unsigned();
    let ran = computer.run_as("alice", &["sign", &index, "--yes", "--json"]).ok();
    let signed = ran.json();
    assert_eq!(signed["public_key"], person("alice").key());
    assert_eq!(signed["signed"][0]["file_path"], json!(index));
    let digest = countersign_core::values::digest::Sha256::of(b"content").to_string();
    ran.says(&[&world.id("acme/app"), "sub/lib", &digest]);
}

#[test]
fn several_paths_are_signed_in_one_run() {
    let (world, computer, first) = unsigned();
    let sums = put_release(&world.files, "acme/app/2.0", &[("app", b"new")]);
    computer.run_as("alice", &["release", "--checksums", &sums]).ok();
    let second = world.index_path("acme/app/2.0");
    let signed = computer.json_as("alice", &["sign", &first, &second, "--yes"]);
    assert_eq!(signed["signed"].as_array().unwrap().len(), 2);
    let signed = computer.json_as("bob", &["sign", "--all", "--yes"]);
    let all: Vec<_> = signed["signed"].as_array().unwrap().iter().map(|one| &one["is_complete"]).collect();
    assert_eq!(all, [true, true]);
}

#[test]
fn who_is_not_asked_gets_an_error_and_who_has_signed_is_told_when() {
    let (world, computer, index) = unsigned();
    computer.run_as("mallory", &["sign", &index, "--yes"]).failed(1).says(&[&person("mallory").key()]);
    computer.run_as("alice", &["sign", &index, "--yes"]).ok();
    // Before anything is asked: there is no one to ask.
    let again = computer.run_as("alice", &["sign", &index]).ok();
    assert!(again.stdout.starts_with(&format!("You signed {index} on 20")), "{again:?}");
    assert_eq!(again.stderr, "");
    let told = computer.json_as("alice", &["sign", &index]);
    assert_eq!((&told["signed"], &told["signed_before"][0]["file_path"]), (&json!([]), &json!(index)));
    assert_eq!(told["signed_before"][0]["is_complete"], false);
    computer.run_as("bob", &["sign", &index, "--yes"]).ok();
    // Of a complete release too, and only to those who did.
    computer.run_as("bob", &["sign", &index]).ok().says(&["You signed", "complete"]);
    computer.run_as("mallory", &["sign", &index, "--yes"]).failed(1).says(&["is not asked"]);
    assert_eq!(computer.json_as("alice", &["sign", &index])["signed_before"][0]["is_complete"], true);
    let nowhere = world.index_path("acme/app/9.9");
    computer.run_as("bob", &["sign", &nowhere, "--yes"]).failed(1).says(&[&nowhere]);
}

#[test]
fn own_files_that_are_the_same_match() {
    let (_world, computer, index) = unsigned();
    build(&computer);
    let args = ["sign", &index, "--files", "built", "--require-match", "--yes"];
    computer.run_as("alice", &args).ok().says(&["3 match", "0 differ", "0 missing"]);
}

#[test]
fn own_files_that_differ_or_are_missing_are_named_and_refused_where_a_match_is_required() {
    let (world, computer, index) = unsigned();
    for (name, change) in [("app", Some("Content")), ("app", None), ("sub/lib", None), ("notes", Some(" "))] {
        build(&computer);
        match change {
            Some(bytes) => drop(computer.write(&format!("built/{name}"), bytes)),
            None => std::fs::remove_file(computer.path(&format!("built/{name}"))).unwrap(),
        }
        let refused =
            computer.run_as("alice", &["sign", &index, "--files", "built", "--require-match", "--yes"]);
        let count = if change.is_some() { "1 differ" } else { "1 missing" };
        let refused = refused.failed(3).says(&["2 match", count]);
        let line =
            refused.stderr.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).unwrap();
        let outcome = if change.is_some() { "differ" } else { "missing" };
        assert!(line.to_lowercase().contains(outcome), "{line}");
    }
    computer
        .run_as("alice", &["sign", &index, "--files", "built", "--require-match", "--yes", "--json"])
        .json_error(3);
    assert_eq!(world.pending(&person("alice")), [index.as_str()]);
    // Without --require-match the signer decides.
    computer.run_as("alice", &["sign", &index, "--files", "built", "--yes"]).ok().says(&["1 differ"]);
}

#[test]
fn a_directory_or_a_link_in_place_of_a_file_is_no_match() {
    let (_world, computer, index) = unsigned();
    build(&computer);
    std::fs::remove_file(computer.path("built/app")).unwrap();
    std::fs::create_dir(computer.path("built/app")).unwrap();
    let args = ["sign", &index, "--files", "built", "--require-match", "--yes"];
    computer.run_as("alice", &args).failed(3).says(&["1 differ"]);
    std::fs::remove_dir(computer.path("built/app")).unwrap();
    std::os::unix::fs::symlink("nowhere", computer.path("built/app")).unwrap();
    computer.run_as("alice", &args).failed(3).says(&["1 missing"]);
}

#[test]
fn a_sub_directory_that_is_a_file_is_a_missing_file_and_no_failure() {
    let (_world, computer, index) = unsigned();
    build(&computer);
    std::fs::remove_dir_all(computer.path("built/sub")).unwrap();
    computer.write("built/sub", "a file");
    let args = ["sign", &index, "--files", "built", "--require-match", "--yes"];
    computer.run_as("alice", &args).failed(3).says(&["2 match"]);
}

#[test]
fn a_directory_that_does_not_exist_is_a_usage_error() {
    let (world, computer, index) = unsigned();
    computer.run_as("alice", &["sign", &index, "--files", "built", "--yes"]).failed(2).says(&["built"]);
    assert_eq!(world.pending(&person("alice")), [index.as_str()]);
}

#[test]
fn a_signers_file_has_no_files_that_could_differ() {
    let alice = person("alice");
    let world = World::start();
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    let computer = Computer::of(&world.server);
    computer.write("built/app", "");
    // Signed or refused, there is nothing to compare.
    let ran = computer.run_as("alice", &["sign", "--all", "--files", "built", "--require-match", "--yes"]);
    ran.says_nothing_of(&["not all the same as yours", "differ"]);
}

#[test]
fn what_a_signer_is_shown_of_a_first_registration_is_everyone_and_every_role() {
    let (alice, bob, mary) = (person("alice"), person("bob"), person("mary"));
    let world = World::start();
    let file = SignersFile::of(1, &[&alice]).admin(1, &[&bob]).master(1, &[&mary]).revocation(1, &[&alice]);
    world.register(&alice, "acme/app", &file).ok();
    let computer = Computer::of(&world.server);
    let shown = computer.run_as("alice", &["sign", "--all", "--yes"]).ok();
    let url = world.files.url("/acme/app/svc.signers.json");
    let words = [&alice.key(), &bob.key(), &mary.key(), &url, "first", "admin", "master", "revo", "missing"];
    shown.says(&words);
    let shown = computer.run_as("bob", &["sign", "--all", "--yes"]).ok();
    let missing = shown.stderr.lines().find(|line| line.trim_start().starts_with("missing")).unwrap();
    assert!(missing.contains(&mary.key()) && !missing.contains(&alice.key()), "{missing}");
    assert_eq!(computer.json_as("mary", &["sign", "--all", "--yes"])["signed"][0]["is_complete"], true);
}

#[test]
fn a_complete_release_asks_no_one_for_anything() {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(1, &[&alice, &bob]), &[&alice, &bob]);
    let index = world.add_signed_release("acme/app/1.0", &[&alice]);
    let computer = Computer::of(&world.server);
    computer.run_as("bob", &["sign", &index]).ok().says(&["complete without your signature"]);
    assert_eq!(computer.json_as("bob", &["sign", &index])["already_complete"], json!([index]));
    computer.run_as("mallory", &["sign", &index, "--yes"]).failed(1).says(&["is not asked"]);
}
