//! `countersign signers`: making a signers file from every spelling of a key, and what a file withstands.

use serde_json::{Value, json};

use crate::support::{
    Person, SignersFile,
    client::{Computer, text},
};

fn person(name: &str) -> Person {
    Person::named(name)
}

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

/// For each act: who can do it alone, how many keys may be stolen, how many lost.
#[track_caller]
fn figures(file: &SignersFile) -> [(Vec<String>, u64, u64); 3] {
    let computer = Computer::offline();
    computer.write("s.json", file.bytes());
    let checked = computer.json(&["signers", "check", "s.json"]);
    let acts: Vec<_> = ["release", "rotate the signers", "revoke"]
        .iter()
        .zip(checked["acts"].as_array().unwrap())
        .map(|(name, act)| {
            assert_eq!(act["act"], *name);
            let mut alone: Vec<String> = serde_json::from_value(act["alone"].clone()).unwrap();
            alone.sort();
            (alone, act["harmless_thefts"].as_u64().unwrap(), act["survivable_losses"].as_u64().unwrap())
        })
        .collect();
    acts.try_into().unwrap()
}

fn keys(people: &[&Person]) -> Vec<String> {
    let mut keys: Vec<_> = people.iter().map(|person| person.key()).collect();
    keys.sort();
    keys
}

#[test]
fn check_counts_what_one_group_withstands() {
    let (a, b, c) = (person("alice"), person("bob"), person("carol"));
    let all = keys(&[&a, &b, &c]);
    let two_of_three = (Vec::new(), 1, 1);
    let figures_of_two = figures(&SignersFile::of(2, &[&a, &b, &c]));
    // Without revocation keys, any one admin revokes (D20).
    assert_eq!(figures_of_two, [two_of_three.clone(), two_of_three, (all.clone(), 0, 2)]);
    let one_of_three = (all.clone(), 0, 2);
    assert_eq!(figures(&SignersFile::of(1, &[&a, &b, &c])), [(); 3].map(|()| one_of_three.clone()));
    let three_of_three = (Vec::new(), 2, 0);
    let expected = [three_of_three.clone(), three_of_three, (all, 0, 2)];
    assert_eq!(figures(&SignersFile::of(3, &[&a, &b, &c])), expected);
    assert_eq!(figures(&SignersFile::of(1, &[&a])), [(); 3].map(|()| (keys(&[&a]), 0, 0)));
}

#[test]
fn check_counts_several_groups_together() {
    let (a, b, c, d) = (person("alice"), person("bob"), person("carol"), person("dave"));
    let apart = SignersFile::of(2, &[&a, &b]).artifact(1, &[&c, &d]);
    let [release, rotate, revoke] = figures(&apart);
    assert_eq!(release, (Vec::new(), 2, 0), "three keys are needed, and Alice is always one of them");
    assert_eq!(rotate, release);
    assert_eq!(revoke, (keys(&[&a, &b, &c, &d]), 0, 3));

    let overlapping = SignersFile::of(1, &[&a, &b]).artifact(1, &[&a, &c]);
    let [release, ..] = figures(&overlapping);
    assert_eq!(release, (keys(&[&a]), 0, 1), "Alice stands in both groups");
}

#[test]
fn check_counts_explicit_roles_and_master_keys() {
    let (a, b, c, d) = (person("alice"), person("bob"), person("carol"), person("dave"));
    let (mary, ron) = (person("mary"), person("ron"));
    let file =
        SignersFile::of(1, &[&a, &b]).admin(2, &[&b, &c, &d]).master(1, &[&mary]).revocation(2, &[&a, &ron]);
    let [release, rotate, revoke] = figures(&file);
    assert_eq!(release, (keys(&[&a, &b]), 0, 1));
    assert_eq!(rotate, (keys(&[&mary]), 0, 2), "the master alone, or two admins");
    assert_eq!(revoke, (Vec::new(), 1, 0));
}

#[test]
fn check_answers_for_the_largest_file_too() {
    let people: Vec<_> = (0..400).map(|number| person(&format!("signer {number}"))).collect();
    let group = |from: usize| people.iter().skip(from).take(200).collect::<Vec<_>>();
    // Five overlapping groups, 1,000 entries in all (D8).
    let file = [0, 50, 100, 150, 200]
        .into_iter()
        .fold(SignersFile::new(), |file, from| file.artifact(101, &group(from)));
    let [(alone, thefts, losses), ..] = figures(&file);
    assert!(alone.is_empty());
    assert!((100..=300).contains(&thefts), "one group alone needs 101: {thefts}");
    assert_eq!(losses, 99, "100 lost of the same group are too many");
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
