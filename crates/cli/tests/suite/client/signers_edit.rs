//! `countersign signers edit`, and what `signers new` writes besides one group.

use serde_json::{Value, json};

use crate::support::client::{Computer, Ran, text};
use crate::support::{Person, SignersFile, World, signers::signer};

/// `name=KEY` for the key of the person of this name.
fn given(name: &str) -> String {
    format!("{name}={}", Person::named(name).key())
}

/// A file of alice and bob, both needed, administrated by alice; with their names.
fn file() -> SignersFile {
    let named = |name: &str| {
        let mut signer = signer(&Person::named(name).key());
        signer["name"] = json!(name);
        signer
    };
    SignersFile::new()
        .with("artifact_signers", json!([{ "threshold": 2, "signers": [named("alice"), named("bob")] }]))
        .with("admin_keys", json!([{ "threshold": 1, "signers": [named("alice")] }]))
}

/// The file that was printed.
#[track_caller]
fn printed(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn names(group: &Value) -> Vec<&str> {
    let signers = group["signers"].as_array().expect("a list").iter();
    signers.map(|signer| signer["name"].as_str().expect("a name")).collect()
}

#[track_caller]
fn edit(computer: &Computer, args: &[&str]) -> Ran {
    computer.run(&[&["signers", "edit", "s.json"], args].concat())
}

#[test]
fn keys_are_added_removed_and_replaced_and_what_changes_is_told() {
    let computer = Computer::offline();
    computer.write("s.json", file().bytes());
    let ran = edit(&computer, &["--add", &given("carol"), "--add", &format!("admin:{}", given("dave"))]).ok();
    let next = printed(&ran);
    assert_eq!(names(&next["artifact_signers"][0]), ["alice", "bob", "carol"]);
    assert_eq!(names(&next["admin_keys"][0]), ["alice", "dave"]);
    assert!(next["timestamp"].as_str().unwrap() > "2026-02", "a later time: {next}");
    ran.says(&["What changes:", "joins as artifact signer", "any 2 of 2 keys becomes any 2 of 3 keys"])
        .says(&["What the new file withstands:", "warning: "]);

    let ran = edit(&computer, &["--remove", "bob", "--threshold", "1"]).ok().says(&["WEAKER", "leaves"]);
    assert_eq!(names(&printed(&ran)["artifact_signers"][0]), ["alice"]);
    assert_eq!(printed(&ran)["artifact_signers"][0]["threshold"], 1);

    // A lost key: the name stays, in every role.
    let key = computer.key_of("alice-new").with_extension("pub");
    let ran = edit(&computer, &["--replace", &format!("alice={}", text(&key))]).ok();
    let next = printed(&ran);
    for role in ["artifact_signers", "admin_keys"] {
        let signer = &next[role][0]["signers"][0];
        assert_eq!(signer["data"]["pubkey"], Person::named("alice-new").key());
        assert_eq!(signer["name"], "alice");
    }
    ran.says(&["WARNING: a name now stands for another key"]);
    let by_key = format!("{}={}", Person::named("bob").key(), given("carol"));
    let ran = edit(&computer, &["--replace", &by_key]).ok();
    assert_eq!(names(&printed(&ran)["artifact_signers"][0]), ["alice", "carol"]);
}

#[test]
fn a_file_is_written_once_and_checked_as_any_other() {
    let computer = Computer::offline();
    computer.write("s.json", file().bytes());
    let args = ["--add", &given("carol"), "-o", "next.json"];
    edit(&computer, &args).ok().says(&["Wrote next.json"]);
    computer.run(&["signers", "check", "next.json"]).ok();
    edit(&computer, &args).failed(1).says(&["next.json"]);
    let told = edit(&computer, &["--add", &given("carol"), "--json"]).ok().json();
    assert!(told["signers_file"].as_str().unwrap().contains("carol"), "{told}");
    assert!(!told["changes"].as_array().unwrap().is_empty(), "{told}");
}

#[test]
fn what_makes_no_file_is_refused_with_the_way_out() {
    let computer = Computer::offline();
    computer.write("s.json", file().bytes());
    let cases: [(&[&str], &str); 10] = [
        (&[], "--add"),
        (&["--remove", "bob"], "--threshold"),
        (&["--remove", "zoe"], "\"alice\", \"bob\""),
        (&["--threshold", "3"], "--threshold artifact:N"),
        (&["--threshold", "0"], "threshold"),
        (&["--threshold", "many"], "--threshold 2"),
        (&["--threshold", "artifact.2:1"], "artifact.2"),
        (&["--add", &format!("master:{}", given("mary"))], "--threshold master:N"),
        (&["--add", &given("alice")], "already"),
        (&["--replace", "bob"], "OLD=NEW"),
    ];
    for (args, word) in cases {
        edit(&computer, args).failed(2).says(&[word]);
    }
    let master = format!("master:{}", given("mary"));
    let ran = edit(&computer, &["--add", &master, "--threshold", "master:1"]).ok();
    assert_eq!(names(&printed(&ran)["master_keys"][0]), ["mary"]);
}

#[test]
fn the_file_in_force_is_read_from_the_server_and_verified() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::with_project(&file(), &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    let project = world.id("acme/app");
    let args = ["signers", "edit", &project, "--add", &given("carol")];
    let ran = computer.run(&args).ok();
    assert_eq!(names(&printed(&ran)["artifact_signers"][0]), ["alice", "bob", "carol"]);
    // What it makes can be proposed.
    computer.run(&[&args[..], &["-o", "next.json"]].concat()).ok();
    world.files.put("/acme/app/next.json", computer.read("next.json"));
    world.files.put("/acme/app/svc.signers.json", computer.read("next.json"));
    computer.run_as("alice", &["update", &world.files.url("/acme/app/svc.signers.json")]).ok();
    let nothing = world.id("acme/none");
    computer.run(&["signers", "edit", &nothing, "--add", &given("carol")]).failed(1).says(&[&nothing]);
}

#[test]
fn servers_are_listed_and_are_not_those_that_are_asked() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::with_project(&file(), &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    let (first, second) = ("https://sign.example.org", "https://mirror.example.org");
    let project = world.id("acme/app");
    let ran = computer.run(&["signers", "edit", &project, "--server", first, "--server", second]).ok();
    assert_eq!(printed(&ran)["servers"], json!([first, second]));
    ran.says(&["servers: "]);
    let key = given("alice");
    let new = ["signers", "new", "--artifact", &key, "--artifact-threshold", "1"];
    let ran = computer.run(&[&new[..], &["--server", first]].concat()).ok();
    assert_eq!(printed(&ran)["servers"], json!([first]));
    // COUNTERSIGN_SERVER is set here. The user did not list that server.
    assert_eq!(printed(&computer.run(&new).ok())["servers"], json!(null));
    computer.run(&[&new[..], &["--server", "ftp://x"]].concat()).failed(2);
}

#[test]
fn a_role_has_as_many_groups_as_thresholds() {
    let computer = Computer::offline();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(given);
    let mut args = vec!["signers", "new", "--artifact", &alice, &bob, "--artifact-threshold", "2"];
    args.extend(["--artifact", &carol, "--artifact-threshold", "1"]);
    let next = printed(&computer.run(&args).ok());
    assert_eq!(names(&next["artifact_signers"][0]), ["alice", "bob"]);
    assert_eq!(names(&next["artifact_signers"][1]), ["carol"]);
    assert_eq!(next["artifact_signers"][1]["threshold"], 1);
    args.extend(["--artifact-threshold", "1"]);
    computer.run(&args).failed(2).says(&["give each group its threshold"]);
    computer.write("s.json", next.to_string());
    edit(&computer, &["--add", &given("dave")]).failed(2).says(&["artifact.1"]);
    let ran = edit(&computer, &["--add", &format!("artifact.2:{}", given("dave"))]).ok();
    assert_eq!(names(&printed(&ran)["artifact_signers"][1]), ["carol", "dave"]);
}
