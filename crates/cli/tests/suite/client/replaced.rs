//! Registering a release again, whose signatures are then dropped.

use serde_json::json;

use crate::support::{
    Person, SignersFile, World,
    client::{Computer, put_release},
    signers::signer,
};

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
