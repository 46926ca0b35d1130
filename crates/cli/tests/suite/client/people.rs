//! Who is who: names first, in the order of the signers file, and the reader marked.

use serde_json::json;

use crate::support::{
    Person, SignersFile, World, client::Computer, client::put_release, signers::named_group,
};

/// As it is shown.
fn shown(name: &str) -> String {
    format!("{name} ({})", Person::named(name).key())
}

#[track_caller]
fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    let line = text.lines().find(|line| line.trim_start().starts_with(begin));
    line.unwrap_or_else(|| panic!("no {begin:?} in {text}"))
}

#[test]
fn a_signer_reads_who_they_are_and_the_others_in_the_order_of_the_file() {
    let people = ["zoe", "alice", "mary"];
    let world = World::start();
    let everyone = people.map(Person::named);
    let file = SignersFile::new().with("artifact_signers", named_group(3, &people));
    world.activate("acme/app", &file, &everyone.each_ref());
    let sums = put_release(&world.files, "acme/app/1.0", &[("app", b"content")]);
    world.register_assets(&everyone[0], &[&sums]).ok();
    let index = world.index_path("acme/app/1.0");
    let computer = Computer::of(&world.server);
    let asked = computer.run_as("alice", &["sign", &index]).failed(2);
    let missing = format!("{}, {} (you), {}", shown("zoe"), shown("alice"), shown("mary"));
    assert!(line(&asked.stderr, "missing").ends_with(&missing), "{}", asked.stderr);
    let asked = asked.says(&[&format!("Sign this release as {}?", shown("alice"))]);
    asked.says(&["has 0 of 3; 3 more from zoe, alice and mary"]);
    for name in ["mary", "zoe"] {
        computer.run_as(name, &["sign", &index, "--yes"]).ok();
    }
    let status = computer.run_as("zoe", &["status", &index]).ok();
    let signed = format!("{} (you), {}", shown("zoe"), shown("mary"));
    assert!(line(&status.stdout, "signed").ends_with(&signed), "{}", status.stdout);
    assert!(line(&status.stdout, "not signed").ends_with(&shown("alice")), "{}", status.stdout);
    let told = computer.json(&["status", &index]);
    assert_eq!((&told["collected"], &told["needed"]), (&json!(2), &json!(3)));
    assert_eq!(told["groups"][0]["signers"][0]["name"], "zoe");
}

#[test]
fn a_mismatch_comes_last_with_both_sides_and_matches_are_counted() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let sums = put_release(&world.files, "acme/app/1.0", &[("app", b"content"), ("lib", b"library")]);
    world.register_assets(&alice, &[&sums]).ok();
    let index = world.index_path("acme/app/1.0");
    let computer = Computer::of(&world.server);
    computer.write("built/app", "Content!");
    computer.write("built/lib", "library");
    computer.write("built/sub/debug", "mine");
    let args = ["sign", &index, "--files", "built"];
    let asked = computer.run_as("alice", &args).failed(2);
    let [listed, own] = [&b"content"[..], b"Content!"].map(countersign_core::values::digest::Sha256::of);
    let (compared, last) = asked.stderr.split_once("  compared ").unwrap();
    assert!(!compared.contains(&listed.to_string()), "{compared}");
    let words = [
        "1 match, 1 differ, 0 missing",
        "sub/debug is yours, and not in the release",
        "app DIFFERS",
        &format!("sha256:{listed}"),
        "8 bytes",
        &format!("sha256:{own}"),
    ];
    let mut rest = last;
    for word in words {
        let (_, behind) = rest.split_once(word).unwrap_or_else(|| panic!("{word:?} in order: {last}"));
        rest = behind;
    }
    assert!(!last.contains("lib"), "{last}");

    let refused = computer.run_as("alice", &[&args[..], &["--require-match", "--yes", "--json"]].concat());
    let comparison = &refused.json_error(3)["comparison"];
    assert_eq!(comparison["not_in_release"], json!(["sub/debug"]));
    assert_eq!(comparison["files"][0]["outcome"], "differ");
    assert_eq!(comparison["files"][0]["yours"]["size"], 8);
    assert_eq!(comparison["files"][0]["release"]["sha256"], json!(listed.to_string()));
    assert_eq!(comparison["files"][1]["outcome"], "match");
    let signed = computer.json_as("alice", &[&args[..], &["--yes"]].concat());
    assert_eq!(signed["signed"][0]["comparison"]["is_match"], false);
}
