//! Registering a release again, whose signatures are then dropped.

use serde_json::json;

use crate::support::client::{Computer, put_release};
use crate::support::{Person, SignersFile, World, days_ago, signers::signer};

/// A project of zoe and alice, in this order, with a release that alice has signed.
#[track_caller]
fn half_signed() -> (World, Computer, String) {
    let (zoe, alice) = (Person::named("zoe"), Person::named("alice"));
    let named = |person: &Person, name: &str| {
        let mut signer = signer(&person.key());
        signer["name"] = json!(name);
        signer
    };
    let signers = [named(&zoe, "zoe"), named(&alice, "alice")];
    let file = SignersFile::new().with("artifact_signers", json!([{ "threshold": 2, "signers": signers }]));
    let world = World::with_project(&file, &[&zoe, &alice]);
    let sums = put_release(&world.files, "acme/app/1.0", &[("app", b"content")]);
    world.register_assets(&zoe, &[&sums]).ok();
    let index = world.index_path("acme/app/1.0");
    world.sign(&alice, &index).ok();
    put_release(&world.files, "acme/app/1.0", &[("app", b"corrected")]);
    let computer = Computer::of(&world.server);
    (world, computer, sums)
}

#[test]
fn whose_signatures_would_fall_is_asked_first() {
    let (world, computer, sums) = half_signed();
    let index = world.index_path("acme/app/1.0");
    let before = world.read(&index);
    let args = ["release", "--checksums", &sums];
    let alice = format!("alice ({})", Person::named("alice").key());
    let asked = computer.run_as("zoe", &args).failed(2);
    asked.says(&["Register it again?", "drops these signatures", &alice, "--yes"]);
    assert_eq!(world.read(&index), before, "nothing was done");
    let replaced = computer.run_as("zoe", &[&args[..], &["--yes"]].concat()).ok();
    replaced.says(&["Registered", "These signatures were dropped", &alice]);
    assert_ne!(world.read(&index), before);
    // There is nothing left to drop.
    put_release(&world.files, "acme/app/1.0", &[("app", b"corrected again")]);
    computer.run_as("zoe", &args).ok().says_nothing_of(&["dropped"]);
}

#[test]
fn programs_are_told_what_was_replaced() {
    let (world, computer, sums) = half_signed();
    let told = computer.json_as("zoe", &["release", "--checksums", &sums, "--yes"]);
    assert_eq!(told["replaced"]["signatures"], json!([Person::named("alice").key()]));
    let first = put_release(&world.files, "acme/app/2.0", &[("app", b"new")]);
    assert_eq!(computer.json_as("zoe", &["release", "--checksums", &first])["replaced"], json!(null));
}

#[test]
fn nothing_is_said_to_fall_where_the_files_are_the_same() {
    let (world, computer, sums) = half_signed();
    put_release(&world.files, "acme/app/1.0", &[("app", b"content")]);
    let args = ["release", "--checksums", &sums];
    for more in [&[][..], &["--yes"]] {
        let same = computer.run_as("zoe", &[&args[..], more].concat()).failed(1);
        same.says(&["with exactly these files"])
            .says_nothing_of(&["drops these signatures", "Register it again"]);
    }
    let status = computer.json(&["status", &world.index_path("acme/app/1.0")]);
    assert_eq!(status["signed_by"], json!([Person::named("alice").key()]));
}

#[test]
fn what_is_registered_with_other_files_is_not_what_a_job_needs() {
    let (world, computer, sums) = half_signed();
    let (zoe, index) = (Person::named("zoe"), world.index_path("acme/app/1.0"));
    let args = ["release", "--checksums", &sums, "--if-needed", "--json"];
    let error = computer.run_as("zoe", &args).json_error(1);
    assert_eq!(error["conflict"], "other_files", "{error}");
    world.sign(&zoe, &index).ok();
    let error = computer.run_as("zoe", &args).json_error(1);
    assert!(error["error"].as_str().unwrap().contains("other files"), "{error}");
    put_release(&world.files, "acme/app/1.0", &[("app", b"content")]);
    assert_eq!(computer.json_as("zoe", &args[..4])["was_registered"], true);
}

/// A project of alice and bob with a proposal that alice has signed, and the URL of another one.
fn half_proposed() -> (World, Computer, String) {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let first = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &first).ok();
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    let next = SignersFile::dated(days_ago(4)).artifact(2, &[&alice, &bob]);
    world.files.put("/acme/app/svc.signers.json", next.bytes());
    let computer = Computer::of(&world.server);
    let url = world.files.url("/acme/app/svc.signers.json");
    (world, computer, url)
}

#[test]
fn whose_signatures_on_a_proposal_are_set_aside_is_asked_first() {
    let (world, computer, url) = half_proposed();
    let (pending, alice) = (world.pending_path("acme/app"), Person::named("alice").key());
    let before = world.read(&pending);
    let asked = computer.run_as("bob", &["update", &url]).failed(2);
    asked.says(&["is another one", "set aside", &alice, "count again", "Propose it?", "--yes"]);
    assert_eq!(world.read(&pending), before, "nothing was done");
    let told = computer.json_as("bob", &["update", &url, "--yes"]);
    assert_eq!(told["replaced"]["signatures"], json!([alice]));
    // The same file again replaces nothing, and asks nothing.
    assert_eq!(computer.json_as("bob", &["update", &url])["replaced"], json!(null));
    // The first file comes back, and its signature with it.
    world.files.put("/acme/app/svc.signers.json", before.clone());
    let back = computer.run_as("bob", &["update", &url]).ok().says(&["No one had signed that one"]);
    back.says_nothing_of(&[&format!("  {alice}")]);
    assert_eq!(computer.json(&["status", &pending])["signed_by"], json!([alice]));
}

#[test]
fn signatures_that_new_signers_drop_are_told_before_and_after() {
    let (world, computer, url) = half_proposed();
    let (alice, pending) = (Person::named("alice"), world.pending_path("acme/app"));
    let index = world.add_release(&alice, "acme/app/1.2");
    world.add_release(&alice, "acme/app/1.3");
    world.sign(&alice, &index).ok();
    let drops = format!("1 collecting release: {index}");
    computer.run_as("bob", &["update", &url, "--yes"]).ok().says(&["need their signatures again", &drops]);
    computer.run_as("bob", &["sign", &pending, "--yes"]).ok().says(&["drops", &drops]);
    computer.run(&["status", &pending]).ok().says(&[&drops]);
    let signed = computer.json_as("alice", &["sign", &pending, "--yes"]);
    assert_eq!(signed["signed"][0]["dropped_signatures_on"], json!([index]));
}
