//! From a key to a verified download by client commands alone: for people, and for programs with `--json`.

use serde_json::{Value, json};

use crate::support::{World, client::Computer, client::put_release, client::text};

const FILES: [(&str, &[u8]); 2] = [("app.tar.gz", b"the archive"), ("notes.txt", b"what is new")];

/// Makes a key with `keygen`; what it is called in `signers new`.
#[track_caller]
fn make_key(computer: &Computer, name: &str) -> (String, String) {
    let made =
        computer.json(&["keygen", "--out", name, "--no-password", "--comment", &format!("{name}@home")]);
    assert_eq!(made["private_key_file"], name);
    (format!("{name}={name}.pub"), made["public_key"].as_str().unwrap().to_owned())
}

/// Two keys and a signers file that needs both, published at `acme/app`; its URL and the keys.
#[track_caller]
fn found(world: &World, computer: &Computer) -> (String, [String; 2]) {
    let ((alice, a), (bob, b)) = (make_key(computer, "alice"), make_key(computer, "bob"));
    let args = ["signers", "new", "--artifact", &alice, &bob, "--artifact-threshold", "2", "-o", "s.json"];
    computer.run(&args).ok();
    world.files.put("/acme/app/svc.signers.json", computer.read("s.json"));
    (world.files.url("/acme/app/svc.signers.json"), [a, b])
}

#[test]
fn people_get_from_a_key_to_a_verified_download() {
    let world = World::start();
    let computer = Computer::of(&world.server);
    let (url, [a, b]) = found(&world, &computer);
    let as_alice = |args: &[&str]| computer.run(&[&["--key", "alice"], args].concat());
    let as_bob = |args: &[&str]| computer.run(&[&["--key", "bob"], args].concat());
    let (project, proposal) = (world.id("acme/app"), world.pending_path("acme/app"));

    as_alice(&["register", &url]).ok().says(&[&project, &proposal, &a, &b]);
    let short = format!("alice {}…{}", &a[..12], &a[a.len() - 5..]);
    as_bob(&["pending"]).ok().says(&["ASKED", &proposal, "sign the signers file", "0 of 2", &short]);
    as_alice(&["sign", &proposal, "--yes"]).ok().says(&[&project, &proposal, &a, &b, "alice (", "2 of 2"]);
    computer.run(&["status", &proposal]).ok().says(&["collecting", &format!("bob ({b})")]);
    as_bob(&["sign", "--all", "--yes"]).ok().says(&["complete"]);

    let sums = put_release(&world.files, "acme/app/1.0", &FILES);
    let index = world.index_path("acme/app/1.0");
    as_bob(&["release", "--checksums", &sums]).ok().says(&[&index]);
    as_bob(&["sign", "--all", "--yes"]).ok().says(&[&project, "app.tar.gz", "notes.txt", "sha256:"]);
    computer.run(&["status", &index]).ok().says(&["collecting", &format!("alice ({a})"), "2 of 2"]);
    as_alice(&["sign", &index, "--yes"]).ok().says(&["complete"]);
    as_alice(&["pending"]).ok().says(&["Nothing"]);
    as_alice(&["sign", "--all", "--yes"]).ok().says(&["Nothing"]);
    computer.run(&["status", &index]).ok().says(&["complete"]);

    let downloaded = computer.download(&world.files.url("/acme/app/1.0/app.tar.gz")).ok();
    assert_eq!(computer.read("app.tar.gz"), b"the archive");
    // Who signed, which thresholds, which root of trust and since when, and that freshness is not proven.
    let (alice, bob) = (format!("alice ({a})"), format!("bob ({b})"));
    downloaded.says(&[&alice, &bob, "2 of 2", &url, "first time", "not proven", "newest", &project]);
    let year = &computer.pins()["projects"][&project]["accepted_at"].as_str().unwrap()[..4].to_owned();
    let again =
        computer.run(&["verify", "app.tar.gz", "--url", &world.files.url("/acme/app/1.0/app.tar.gz")]);
    again.ok().says(&[&format!("since {year}-"), &url, "not proven"]);
    computer.run(&["trust", "list"]).ok().says(&[&project, &url]);
    computer.run(&["chain", &project]).ok().says(&[&project, &url, &alice, &bob]);
    computer.run(&["chain", &index]).ok().says(&[&project, &url]);
    as_alice(&["revoke", &index, "--reason", "built wrongly", "--yes"]).ok().says(&[&index, "built wrongly"]);
    computer.run(&["status", &index]).ok().says(&["REVOKED", "built wrongly"]);
}

#[test]
fn programs_get_one_json_object_from_every_command() {
    let world = World::start();
    let computer = Computer::of(&world.server);
    let (url, [a, b]) = found(&world, &computer);
    let as_alice = |args: &[&str]| computer.json(&[&["--key", "alice"], args].concat());
    let as_bob = |args: &[&str]| computer.json(&[&["--key", "bob"], args].concat());
    let (project, proposal) = (world.id("acme/app"), world.pending_path("acme/app"));

    let registered = as_alice(&["register", &url]);
    assert_eq!(registered["project_id"], json!(project));
    let mut required: Vec<String> = serde_json::from_value(registered["required_signers"].clone()).unwrap();
    required.sort();
    let mut both = vec![a.clone(), b.clone()];
    both.sort();
    assert_eq!(required, both);
    assert_eq!(as_bob(&["pending"])["file_paths"], json!([proposal]));
    let signed = as_alice(&["sign", &proposal, "--yes"]);
    assert_eq!(signed["signed"], json!([{ "file_path": proposal, "is_complete": false }]));
    let status = computer.json(&["status", &proposal]);
    assert_eq!((&status["is_complete"], &status["missing"]), (&json!(false), &json!([b])));
    assert_eq!(as_bob(&["sign", "--all", "--yes"])["signed"][0]["is_complete"], true);

    let sums = put_release(&world.files, "acme/app/1.0", &FILES);
    let index = world.index_path("acme/app/1.0");
    assert_eq!(as_bob(&["release", "--checksums", &sums])["index_file_path"], json!(index));
    as_bob(&["sign", "--all", "--yes"]);
    as_alice(&["sign", "--all", "--yes"]);
    assert_eq!(as_alice(&["sign", "--all", "--yes"])["signed"], json!([]));
    assert_eq!(as_alice(&["pending"])["file_paths"], json!([]));
    let status = computer.json(&["status", &index]);
    assert_eq!((&status["is_complete"], &status["revoked"]), (&json!(true), &json!(false)));

    let file = world.files.url("/acme/app/1.0/app.tar.gz");
    assert_verified(&computer.json(&["download", &file]), &both, true);
    assert_verified(&computer.json(&["verify", "app.tar.gz", "--url", &file]), &both, false);
    assert_eq!(computer.json(&["bundle", &file, "-o", "b.json"])["bundle"], "b.json");
    assert_verified(&computer.json(&["verify", "app.tar.gz", "--bundle", "b.json"]), &both, false);
    let chain = computer.json(&["chain", &project]);
    assert_eq!((&chain["project_id"], chain["entries"].as_array().unwrap().len()), (&json!(project), 1));
    assert!(computer.json(&["trust", "list"])["projects"][&project].is_object());
    assert_eq!(computer.json(&["ping"])["auth"]["status"], "unauthenticated");
    assert_eq!(as_alice(&["ping"])["auth"]["public_key"], json!(a));
    assert_eq!(as_alice(&["revoke", &index, "--reason", "broken", "--yes"])["revoked"], true);
    let status = computer.json(&["status", &index]);
    assert_eq!((&status["revoked"], &status["reason"]), (&json!(true), &json!("broken")));
    assert_eq!(computer.json(&["trust", "remove", &project, "--yes"])["removed"], json!(project));
    let checked = computer.json(&["signers", "check", text(&computer.path("s.json"))]);
    assert_eq!(checked["keys"], 2);
}

#[track_caller]
fn assert_verified(report: &Value, signers: &[String], first_use: bool) {
    assert_eq!(report["verified"], true, "{report}");
    let mut keys: Vec<_> =
        report["signed_by"].as_array().unwrap().iter().map(|one| &one["public_key"]).collect();
    keys.sort_by_key(|key| key.to_string());
    assert_eq!(json!(keys), json!(signers));
    assert_eq!(report["thresholds"], json!([{ "threshold": 2, "size": 2, "signed": 2 }]));
    assert_eq!(report["first_use"], first_use);
    assert_eq!(report["freshness_proven"], false);
    assert_eq!((&report["file_name"], &report["size"]), (&json!("app.tar.gz"), &json!(11)));
    assert!(report["root"]["url"].as_str().is_some_and(|url| url.ends_with("svc.signers.json")), "{report}");
}

#[test]
fn a_proposed_update_is_named_with_those_who_have_to_sign() {
    let world = World::start();
    let computer = Computer::of(&world.server);
    let (url, _) = found(&world, &computer);
    computer.run(&["--key", "alice", "register", &url]).ok();
    for name in ["alice", "bob"] {
        computer.run(&["--key", name, "sign", "--all", "--yes"]).ok();
    }
    let (carol, key) = make_key(&computer, "carol");
    let args = ["signers", "new", "--artifact", "alice=alice.pub", "bob=bob.pub", &carol];
    let mut next: Value = computer.json(&[&args[..], &["--artifact-threshold", "2"]].concat());
    let mut next: Value = serde_json::from_str(next["signers_file"].take().as_str().unwrap()).unwrap();
    // The clock may not have moved on since the first file.
    next["timestamp"] = json!(crate::support::seconds_from_now(60).to_string());
    world.files.put("/acme/app/svc.signers.json", next.to_string());
    let proposed = computer.json(&["--key", "alice", "update", &url]);
    assert_eq!(proposed["file_path"], json!(world.pending_path("acme/app")));
    assert!(proposed["required_signers"].as_array().unwrap().contains(&json!(key)), "{proposed}");
    // Proposing the same again changes nothing, and says who is missing.
    computer.run(&["--key", "bob", "update", &url]).ok().says(&[&key, &world.id("acme/app")]);
}

#[test]
fn a_chain_that_does_not_exist_is_an_error_with_a_hint() {
    let world = World::start();
    let computer = Computer::of(&world.server);
    let unknown = world.id("acme/app");
    computer.run(&["chain", &unknown]).failed(1).says(&[&unknown]);
    computer.run(&["chain", &world.index_path("acme/app/1.0"), "--json"]).json_error(1);
}

#[test]
fn completions_are_printed_for_every_shell() {
    let computer = Computer::offline();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = computer.run(&["completions", shell]).ok();
        assert!(script.stdout.contains("countersign") && script.stderr.is_empty(), "{shell}");
    }
    computer.run(&["completions", "tcl"]).failed_as_usage();
}
