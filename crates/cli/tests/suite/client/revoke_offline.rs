//! Revoking with keys on computers without a network: export, detached, submit.

use crate::support::{SignersFile, World, client::Computer, client::add_files, person};

/// A release of alice's, which rita and ron revoke together.
fn released() -> (World, Computer, String) {
    let (alice, rita, ron) = (person("alice"), person("rita"), person("ron"));
    let file = SignersFile::of(1, &[&alice]).revocation(2, &[&rita, &ron]);
    let world = World::with_project(&file, &[&alice, &rita, &ron]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice]);
    let computer = Computer::of(&world.server);
    (world, computer, index)
}

#[track_caller]
fn carry(from: &Computer, to: &Computer, name: &str) {
    to.write(name, from.read(name));
}

/// Exports, signs with the key of `name` elsewhere, and submits with alice's.
#[track_caller]
fn revoke_offline(computer: &Computer, name: &str, export: &[&str]) -> bool {
    // Without a key.
    computer.run(&[&["revoke"], export, &["--export", "request.json"]].concat()).ok().says(&["--detached"]);
    let offline = Computer::offline();
    carry(computer, &offline, "request.json");
    let args = ["revoke", "--detached", "request.json", "-o", "revocation.json"];
    offline.run_as(name, &args).failed(2).says(&["--yes", "key leaked", "app", "sha512:"]);
    assert_eq!(offline.listing(), ["request.json"]);
    offline.run_as(name, &[&args[..], &["--yes"]].concat()).ok().says(&["--submit"]);
    carry(&offline, computer, "revocation.json");
    let submitted = computer.json_as("alice", &["revoke", "--submit", "revocation.json"]);
    let revocation = &submitted["revocations"][0];
    assert_eq!(revocation["public_key"], person(name).key());
    revocation["revoked"].as_bool().unwrap()
}

#[test]
fn a_release_is_revoked_by_two_keys_that_never_meet_a_network() {
    let (world, computer, index) = released();
    assert!(!revoke_offline(&computer, "rita", &[&index, "--reason", "key leaked"]));
    assert!(world.is_complete(&person("alice"), &index));
    // The second signs what the first began, without a reason of their own.
    assert!(revoke_offline(&computer, "ron", &[&index]));
    computer.download(&world.files.url("/acme/app/1.0/app")).failed(4).says(&["key leaked"]);
}

#[test]
fn an_offline_and_an_online_key_revoke_together() {
    let (_world, computer, index) = released();
    computer.run_as("ron", &["revoke", &index, "--reason", "key leaked", "--yes"]).ok();
    assert!(revoke_offline(&computer, "rita", &[&index]));
}

#[test]
fn only_a_revoker_signs_and_nothing_but_a_revocation_of_this_release() {
    let (world, computer, index) = released();
    computer.run(&["revoke", &index, "--export", "request.json"]).failed(2).says(&["--reason"]);
    computer.run(&["revoke", &index, "--reason", "bad", "--export", "request.json"]).ok();
    let offline = Computer::offline();
    let request = String::from_utf8(computer.read("request.json")).unwrap();
    let args = ["revoke", "--detached", "request.json", "-o", "revocation.json", "--yes"];
    offline.write("request.json", &request);
    for name in ["alice", "mallory"] {
        offline.run_as(name, &args).failed(1).says(&[&person(name).key(), "may not revoke"]);
    }
    let other = request.replacen("\"index\": \"", "\"index\": \" ", 1);
    let foreign = request.replacen("1.0/svc.index.json", "1.1/svc.index.json", 1);
    let unknown = request.replacen("\"index\"", "\"extra\": 1, \"index\"", 1);
    for (text, code) in [(other, 3), (foreign, 3), (unknown, 1), ("{}".to_owned(), 1), (String::new(), 1)] {
        offline.write("request.json", &text);
        offline.run_as("rita", &args).failed(code);
        assert!(!offline.path("revocation.json").exists(), "{text}");
    }
    // None of the four files is taken for another.
    computer
        .run(&["sign", &world.add_release(&person("alice"), "acme/app/2.0"), "--export", "sign.json"])
        .ok();
    let sign = String::from_utf8(computer.read("sign.json")).unwrap();
    offline.write("request.json", sign);
    offline.run_as("rita", &args).failed(1).says(&["revoke NAME --reason TEXT --export"]);
    offline.write("request.json", &request);
    offline.run_as("rita", &["sign", "--detached", "request.json", "-o", "s.json", "--yes"]).failed(1);
    offline
        .run_as("rita", &["revoke", "--detached", "request.json", "-o", "request.json", "--yes"])
        .failed(2);
}
