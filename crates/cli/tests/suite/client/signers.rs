//! `countersign signers`: making a signers file from every spelling of a key, and what a file withstands.

use serde_json::{Value, json};

use crate::support::{SignersFile, client::Computer, client::text, person};

/// What `signers new` prints.
#[track_caller]
fn make(computer: &Computer, args: &[&str]) -> Value {
    let made = computer.run(&[&["signers", "new"], args].concat()).ok();
    assert_eq!(made.stderr, "");
    serde_json::from_str(&made.stdout).unwrap_or_else(|_| panic!("no signers file: {made:?}"))
}

#[test]
fn a_key_may_be_a_file_or_a_svc_string_or_an_ssh_line_with_or_without_a_name() {
    let computer = Computer::offline();
    let alice = person("alice");
    let file = format!("{}.pub", text(&computer.key_of("alice")));
    let line = alice.ssh_key();
    let bare = line.rsplit_once(' ').unwrap().0.to_owned();
    let with_equals_sign = format!("{bare} laptop=home");
    for spelling in [file, alice.key(), line, bare, with_equals_sign] {
        let made = make(&computer, &["--artifact", &spelling, "--artifact-threshold", "1"]);
        let signer = &made["artifact_signers"][0]["signers"][0];
        assert_eq!(*signer, json!({ "kind": "key", "data": { "pubkey": alice.key() } }), "{spelling}");

        let named = format!("al={spelling}");
        let made = make(&computer, &["--artifact", &named, "--artifact-threshold", "1"]);
        let signer = &made["artifact_signers"][0]["signers"][0];
        let expected = json!({ "kind": "key", "data": { "pubkey": alice.key() }, "name": "al" });
        assert_eq!(*signer, expected, "{named}");
    }
}

#[test]
fn every_role_gets_its_keys_and_its_threshold() {
    let computer = Computer::offline();
    let [a, b, c, d, e] = ["alice", "bob", "carol", "dave", "erin"].map(|name| person(name).key());
    let artifact = ["--artifact", &a, "--artifact", &b, "--artifact-threshold", "2"];
    let admin = ["--admin", &c, &a, "--admin-threshold", "1"];
    let master = ["--master", &d, "--master-threshold", "1"];
    let revocation = ["--revocation", &e, &b, "--revocation-threshold", "2"];
    let made = make(&computer, &[&artifact[..], &admin, &master, &revocation].concat());
    for (role, threshold, expected) in [
        ("artifact_signers", 2, vec![&a, &b]),
        ("admin_keys", 1, vec![&c, &a]),
        ("master_keys", 1, vec![&d]),
        ("revocation_keys", 2, vec![&e, &b]),
    ] {
        assert_eq!(made[role].as_array().unwrap().len(), 1, "{made}");
        let group = &made[role][0];
        assert_eq!(group["threshold"], threshold, "{role}");
        let keys: Vec<_> =
            group["signers"].as_array().unwrap().iter().map(|one| &one["data"]["pubkey"]).collect();
        assert_eq!(keys.len(), expected.len(), "{role}");
        assert!(expected.iter().all(|key| keys.contains(&&json!(key))), "{role}: {made}");
    }
    assert_eq!(made["version"], 1);
    assert!(made["timestamp"].as_str().unwrap().ends_with('Z'), "{made}");
}

#[test]
fn a_written_file_is_valid_and_never_replaces_another() {
    let computer = Computer::offline();
    computer.run(&["keygen", "--out", "mine", "--no-password"]).ok();
    let args = ["signers", "new", "--artifact", "me=mine.pub", "--artifact-threshold", "1", "-o", "s.json"];
    computer.run(&args).ok().says(&["s.json"]);
    let before = computer.read("s.json");
    computer.run(&["signers", "check", "s.json"]).ok();
    computer.run(&args).failed(1).says(&["s.json"]);
    assert_eq!(computer.read("s.json"), before);
    assert_eq!(computer.json(&["signers", "check", "s.json"])["valid"], true);
}

#[test]
fn with_json_a_made_file_is_in_one_object() {
    let computer = Computer::offline();
    let key = person("alice").key();
    let args = ["signers", "new", "--artifact", &key, "--artifact-threshold", "1"];
    let printed = computer.json(&args);
    let file: Value = serde_json::from_str(printed["signers_file"].as_str().unwrap()).unwrap();
    assert_eq!(file["artifact_signers"][0]["threshold"], 1);
    let written = computer.json(&[&args[..], &["-o", "s.json"]].concat());
    assert_eq!(written["file"], "s.json");
}

#[test]
fn what_makes_no_signers_file_is_a_usage_error_and_writes_nothing() {
    let computer = Computer::offline();
    let (a, b) = (person("alice").key(), person("bob").key());
    let private = text(&computer.key_of("alice")).to_owned();
    let one = ["--artifact", &a, "--artifact-threshold", "1"];
    for args in [
        vec!["--artifact", &a, "--artifact-threshold", "0"],
        vec!["--artifact", &a, "--artifact-threshold", "2"],
        vec!["--artifact", &a, "--artifact-threshold", "-1"],
        vec!["--artifact", &a, &a, "--artifact-threshold", "1"],
        vec!["--artifact", &format!("x={a}"), &format!("x={b}"), "--artifact-threshold", "1"],
        vec!["--artifact", &a],
        vec!["--artifact-threshold", "1"],
        [&one[..], &["--admin", &b]].concat(),
        [&one[..], &["--admin-threshold", "1"]].concat(),
        [&one[..], &["--master", &a, "--master-threshold", "1"]].concat(),
        vec!["--artifact", "svc-pub:abc", "--artifact-threshold", "1"],
        vec!["--artifact", "ssh-rsa AAAAB3NzaC1yc2E=", "--artifact-threshold", "1"],
        vec!["--artifact", &format!("bad\u{202e}name={a}"), "--artifact-threshold", "1"],
        vec!["--artifact", &private, "--artifact-threshold", "1"],
    ] {
        let ran = computer.run(&[&["signers", "new", "-o", "s.json"], &args[..]].concat());
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(ran.stdout.is_empty() && !ran.stderr.contains('\u{202e}'), "{args:?}: {ran:?}");
        assert!(!ran.stderr.contains("PRIVATE KEY"), "{args:?}: {ran:?}");
        assert_eq!(computer.listing(), [""; 0], "{args:?}");
    }
    computer
        .run(&["signers", "new", "--artifact", "gone.pub", "--artifact-threshold", "1"])
        .says(&["gone.pub"]);
}

#[test]
fn check_says_in_words_who_can_act_alone_and_names_no_one_without_a_key() {
    let computer = Computer::offline();
    let (a, b) = (person("alice").key(), person("bob").key());
    let (alice, bob) = (format!("alice={a}"), format!("bob={b}"));
    let args = ["--artifact", &alice, &bob, "--artifact-threshold", "1", "-o", "s.json"];
    computer.run(&[&["signers", "new"], &args[..]].concat()).ok();
    let said = computer.run(&["signers", "check", "s.json"]).ok();
    let alone = said.stdout.lines().find(|line| line.contains("alone")).unwrap_or_else(|| panic!("{said:?}"));
    assert!(alone.contains(&format!("alice ({a})")) && alone.contains(&format!("bob ({b})")), "{alone}");
    said.says(&["stolen", "lost", "warning: ", "sha512:"]);
}

#[test]
fn check_refuses_what_is_no_signers_file_and_names_the_field() {
    let computer = Computer::offline();
    let good = SignersFile::of(1, &[&person("alice")]);
    for (file, field) in [
        (good.clone().with("version", json!(2)), "version"),
        (good.clone().with("admin_keys", json!([])), "admin_keys"),
        (good.clone().with("extra", json!(1)), "extra"),
        (good.clone().without("artifact_signers"), "artifact_signers"),
    ] {
        computer.write("s.json", file.bytes());
        computer.run(&["signers", "check", "s.json"]).failed(1).says(&[field, "s.json"]);
        let error = computer.run(&["signers", "check", "s.json", "--json"]).json_error(1);
        assert!(error.to_string().contains(field), "{error}");
    }
    computer.run(&["signers", "check", "gone.json"]).failed(1).says(&["gone.json"]);
}
