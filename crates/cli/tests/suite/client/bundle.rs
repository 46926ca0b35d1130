//! Offline bundles: verified without any network, before and after what happened since.

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::support::client::{Computer, add_files, text};
use crate::support::{SignersFile, World, days_ago, person};

fn signers() -> SignersFile {
    SignersFile::of(1, &[&person("alice")])
}

fn digest(file: &SignersFile) -> String {
    Sha512::of(&file.bytes()).to_prefixed()
}

/// A computer that has downloaded a release of two files, and has a bundle of it.
fn bundled() -> (World, Computer, String) {
    let world = World::with_project(&signers(), &[&person("alice")]);
    let files: [(&str, &[u8]); 2] = [("app", b"content"), ("sub/lib", b"library")];
    let index = add_files(&world, "acme/app/1.0", &files, &[&person("alice")]);
    let computer = Computer::of(&world.server);
    for name in ["app", "sub/lib"] {
        computer.download(&world.files.url(&format!("/acme/app/1.0/{name}"))).ok();
    }
    computer.run(&["bundle", &world.files.url("/acme/app/1.0/app"), "-o", "b.json"]).ok().says(&["b.json"]);
    (world, computer, index)
}

/// Another computer that gets the files by hand and reaches no server.
fn carried(from: &Computer) -> Computer {
    let offline = Computer::offline();
    for name in ["app", "lib", "b.json"] {
        offline.write(name, from.read(name));
    }
    offline
}

const VERIFY: [&str; 4] = ["verify", "app", "--bundle", "b.json"];

#[test]
fn a_bundle_needs_no_network_on_a_computer_that_has_the_pin() {
    let (mut world, computer, index) = bundled();
    let asked = world.files.asked().len();
    world.server.stop();
    let verified = computer.run(&VERIFY).ok();
    // It says what only the network could prove.
    let verified = verified.says(&["network", "revocation", "not proven"]);
    verified.says(&[&person("alice").key(), "1 of 1", "since "]);
    let report = computer.json(&VERIFY);
    assert_eq!((&report["verified"], &report["freshness_proven"]), (&json!(true), &json!(false)));
    assert_eq!(report["index_path"], json!(index));
    assert!(report["bundled_at"].as_str().is_some_and(|time| time.ends_with('Z')), "{report}");
    assert_eq!(world.files.asked().len(), asked, "the file server is not asked either");
}

#[test]
fn without_a_pin_it_needs_the_digest() {
    let (_world, computer, _) = bundled();
    let offline = carried(&computer);
    offline.run(&VERIFY).failed(3).says(&["--signers-digest"]);
    offline.run(&[&VERIFY[..], &["--json"]].concat()).json_error(3);
    let wrong = format!("sha512:{}", "0".repeat(128));
    offline.run(&[&VERIFY[..], &["--signers-digest", &wrong]].concat()).failed(3);
    assert!(!offline.config().join("trust.json").exists());
    offline.run(&[&VERIFY[..], &["--signers-digest", &digest(&signers())]].concat()).ok();
    // That is a first use: from now on there is a pin.
    offline.run(&VERIFY).ok().says_nothing_of(&["first time"]);
}

#[test]
fn making_a_bundle_names_the_digest_that_a_stranger_needs() {
    let (world, computer, _) = bundled();
    let made = computer.run(&["bundle", &world.files.url("/acme/app/1.0/app"), "-o", "again.json"]).ok();
    made.says(&[&digest(&signers()), "--signers-digest", "verify"]);
    let made = computer.json(&["bundle", &world.files.url("/acme/app/1.0/app"), "-o", "third.json"]);
    assert_eq!(made["newest_signers_digest"], json!(digest(&signers())));
}

#[test]
fn every_file_of_the_release_is_verified_by_one_bundle_also_when_renamed() {
    let (_world, computer, _) = bundled();
    computer.run(&["verify", "lib", "--bundle", "b.json"]).ok().says(&["sub/lib"]);
    computer.write("renamed.bin", "content");
    let report = computer.json(&["verify", "renamed.bin", "--bundle", "b.json"]);
    assert_eq!(report["file_name"], "app");
    computer.write("app", "Content");
    computer.run(&VERIFY).failed(3).says(&["not the file that was signed"]);
    computer.write("stranger", "stranger");
    computer.run(&["verify", "stranger", "--bundle", "b.json"]).failed(3).says(&["stranger", "app"]);
}

#[test]
fn of_two_files_with_the_same_last_name_the_one_that_it_is_counts() {
    let world = World::with_project(&signers(), &[&person("alice")]);
    let files: [(&str, &[u8]); 2] = [("linux/app", b"for linux"), ("mac/app", b"for mac")];
    add_files(&world, "acme/app/1.0", &files, &[&person("alice")]);
    let computer = Computer::of(&world.server);
    computer.run(&["bundle", &world.files.url("/acme/app/1.0/mac/app"), "-o", "b.json"]).ok();
    for (name, content) in files {
        computer.write("app", content);
        assert_eq!(computer.json(&VERIFY)["file_name"], name);
    }
    computer.write("app", "for nobody");
    computer.run(&VERIFY).failed(3);
}

#[test]
fn a_local_file_that_cannot_be_read_is_no_failed_verification() {
    let (_world, computer, _) = bundled();
    std::fs::remove_file(computer.path("app")).unwrap();
    computer.run(&VERIFY).failed(1).says(&["app"]);
    computer.run(&["verify", "absent", "--bundle", "b.json"]).failed(1).says(&["absent"]);
}

#[test]
fn a_bundle_that_was_changed_or_is_none_is_refused() {
    let (_world, computer, _) = bundled();
    let good = String::from_utf8(computer.read("b.json")).unwrap();
    let json: Value = serde_json::from_str(&good).unwrap();
    assert!(json.is_object());
    for text in [
        "",
        "{}",
        "[]",
        "hello",
        &good[..good.len() / 2],
        &good.replace("1.0", "1.1"),
        &good.replacen("app", "apq", 1),
    ] {
        computer.write("b.json", text);
        computer.run(&VERIFY).failed(3);
    }
    computer.run(&["verify", "app", "--bundle", "absent.json"]).failed(1).says(&["absent.json"]);
}

#[test]
fn a_bundle_from_before_a_rotation_holds_after_it() {
    let (world, computer, _) = bundled();
    let (alice, bob) = (person("alice"), person("bob"));
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&bob]);
    world.rotate("acme/app", &next, &[&alice, &bob]);
    add_files(&world, "acme/app/2.0", &[("app", b"new")], &[&bob]);
    computer.run(&["download", &world.files.url("/acme/app/2.0/app"), "-o", "new"]).ok();
    let report = computer.json(&VERIFY);
    assert_eq!(report["signed_by"][0]["public_key"], json!(alice.key()));
    let history = &computer.pins()["projects"][world.id("acme/app")]["history"];
    assert_eq!(history.as_array().unwrap().len(), 2, "what was seen since is not forgotten");

    // Of a later bundle, the digest of either file is a root; of the older one, only that of the first.
    computer.run(&["bundle", &world.files.url("/acme/app/2.0/app"), "-o", "b2.json"]).ok();
    for (bundle, file, root, code) in [
        ("b2.json", "new", &next, 0),
        ("b2.json", "new", &signers(), 0),
        ("b.json", "app", &signers(), 0),
        ("b.json", "app", &next, 3),
    ] {
        let offline = Computer::offline();
        let names = [file, bundle].map(|name| offline.write(name, computer.read(name)));
        let digest = digest(root);
        let args = ["verify", text(&names[0]), "--bundle", text(&names[1]), "--signers-digest", &digest];
        assert_eq!(offline.run(&args).code, code, "{bundle} {digest}");
    }
}

#[test]
fn a_revocation_that_was_seen_is_remembered_offline() {
    let (mut world, computer, index) = bundled();
    let other = carried(&computer);
    world.revoke(&person("alice"), &index).ok();
    computer.run(&VERIFY).ok();
    computer.download(&world.files.url("/acme/app/1.0/app")).failed(4);
    world.server.stop();
    computer.run(&VERIFY).failed(4).says(&["key leaked"]);
    computer.run(&[&VERIFY[..], &["--json"]].concat()).json_error(4);
    computer.run(&["verify", "lib", "--bundle", "b.json"]).failed(4);
    // A client that has not seen it cannot know, and says so.
    let verified = other.run(&[&VERIFY[..], &["--signers-digest", &digest(&signers())]].concat()).ok();
    verified.says(&["revocation"]);
}

#[test]
fn what_is_said_of_a_remembered_revocation_fits_a_bundle() {
    let (mut world, computer, index) = bundled();
    world.revoke(&person("alice"), &index).ok();
    computer.download(&world.files.url("/acme/app/1.0/app")).failed(4);
    world.server.stop();
    // No server was asked, so none has stopped showing it.
    computer.run(&VERIFY).failed(4).says_nothing_of(&["the server no longer shows it"]);
}
