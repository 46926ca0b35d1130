//! New signers: the difference in words, whose consent is missing, and downloads before and after.

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::support::client::{Computer, Ran, add_files};
use crate::support::{Answer, SignersFile, World, days_ago, person};

fn later(days: i64) -> SignersFile {
    SignersFile::dated(days_ago(days))
}

/// The line that says something about a key, and with which words.
#[track_caller]
fn assert_line(shown: &Ran, key: &str, words: &str) {
    let text = shown.stderr.as_str();
    let found = text.lines().any(|line| line.contains(key) && line.contains(words));
    assert!(found, "no line with {key} and {words:?}: {text}");
}

fn line_of<'a>(shown: &'a Ran, title: &str) -> &'a str {
    let line = shown.stderr.lines().find(|line| line.trim_start().starts_with(title));
    line.unwrap_or_else(|| panic!("no line {title:?}: {shown:?}"))
}

#[test]
fn the_difference_is_told_in_words_and_so_is_who_is_missing() {
    let (alice, bob, carol, dave) = (person("alice"), person("bob"), person("carol"), person("dave"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    let next = later(5).artifact(1, &[&alice, &carol, &dave]).admin(2, &[&alice, &carol]);
    world.files.put("/acme/app/svc.signers.json", next.bytes());
    let url = world.files.url("/acme/app/svc.signers.json");
    let proposed = computer.run_as("alice", &["update", &url]).ok();
    let all = [alice.key(), bob.key(), carol.key(), dave.key()];
    proposed.says(&[&all[0], &all[1], &all[2], &all[3]]);

    let shown = computer.run_as("alice", &["sign", "--all", "--yes"]).ok();
    assert_line(&shown, &carol.key(), "joins");
    assert_line(&shown, &dave.key(), "joins");
    assert_line(&shown, &bob.key(), "leaves");
    assert_line(&shown, "artifact signers", "any 2 of 2 keys becomes any 1 of 3 keys");
    assert_line(&shown, "admin", "2 of 2");
    let shown = shown.says(&["WEAKER", &Sha512::of(&next.bytes()).to_prefixed(), &url]);
    let missing = line_of(&shown, "missing");
    assert!(all.iter().all(|key| missing.contains(key)), "{missing}");
    // Each signature makes the list shorter.
    let shown = computer.run_as("carol", &["sign", "--all", "--yes"]).ok();
    assert!(
        !line_of(&shown, "missing").contains(&alice.key())
            && line_of(&shown, "signed").contains(&alice.key())
    );
    let status = computer.json(&["status", &world.pending_path("acme/app")]);
    let missing: Vec<String> = serde_json::from_value(status["missing"].clone()).unwrap();
    assert!(missing.contains(&bob.key()) && missing.contains(&dave.key()) && missing.len() == 2, "{status}");
    computer.run_as("dave", &["sign", "--all", "--yes"]).ok().says(&["more signatures"]);
    computer.run_as("bob", &["sign", "--all", "--yes"]).ok().says(&["complete"]);
    computer.run(&["status", &world.pending_path("acme/app")]).failed(1).says(&["chain"]);
    let chain = computer.run(&["chain", &world.id("acme/app")]).ok();
    chain.says(&[&carol.key(), "joins", "leaves", "1. ", "2. "]);
}

/// A project of alice that passes to bob: `1.0` is hers, `2.0` his. The new file is at `path`.
struct Rotated {
    world: World,
    veteran: Computer,
    path: &'static str,
}

const FIRST: &str = "/acme/app/svc.signers.json";

impl Rotated {
    #[track_caller]
    fn at(path: &'static str) -> Self {
        let (alice, bob) = (person("alice"), person("bob"));
        let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
        add_files(&world, "acme/app/1.0", &[("app", b"old")], &[&alice]);
        let veteran = Computer::of(&world.server);
        veteran.download(&world.files.url("/acme/app/1.0/app")).ok();
        world.files.put(path, later(5).artifact(1, &[&bob]).bytes());
        let signers = Computer::of(&world.server);
        signers.run_as("alice", &["update", &world.files.url(path)]).ok();
        signers.sign_all(&["alice", "bob"]);
        add_files(&world, "acme/app/2.0", &[("app", b"new")], &[&bob]);
        Self { world, veteran, path }
    }

    fn download(&self, computer: &Computer, version: &str) -> Ran {
        let url = self.world.files.url(&format!("/acme/app/{version}/app"));
        computer.run(&["download", &url, "-o", version, "--json"])
    }

    #[track_caller]
    fn assert_both(&self, computer: &Computer) -> [Value; 2] {
        let reports = ["1.0", "2.0"].map(|version| self.download(computer, version).ok().json());
        assert_eq!((computer.read("1.0"), computer.read("2.0")), (b"old".to_vec(), b"new".to_vec()));
        assert_eq!(reports[0]["signed_by"][0]["public_key"], person("alice").key());
        assert_eq!(reports[1]["signed_by"][0]["public_key"], person("bob").key());
        let history = &computer.pins()["projects"][self.world.id("acme/app")]["history"];
        assert_eq!(history.as_array().unwrap().len(), 2, "the whole history is remembered");
        reports
    }
}

#[test]
fn old_and_new_releases_are_downloaded_with_and_without_a_pin_from_the_same_url() {
    let rotated = Rotated::at(FIRST);
    let [old, new] = rotated.assert_both(&rotated.veteran);
    assert_eq!((&old["first_use"], &new["first_use"]), (&json!(false), &json!(false)));
    let newcomer = Computer::of(&rotated.world.server);
    let [old, new] = rotated.assert_both(&newcomer);
    assert_eq!((&old["first_use"], &new["first_use"]), (&json!(true), &json!(false)));
}

#[test]
fn old_and_new_releases_are_downloaded_with_and_without_a_pin_from_another_url() {
    let rotated = Rotated::at("/acme/app/svc.signers/2.json");
    rotated.assert_both(&rotated.veteran);
    rotated.assert_both(&Computer::of(&rotated.world.server));
}

#[test]
fn a_newcomer_finds_the_root_also_when_only_the_new_signers_file_is_published() {
    let rotated = Rotated::at("/acme/app/svc.signers/2.json");
    assert_ne!(rotated.path, FIRST);
    rotated.world.files.set(FIRST, Answer::Status(404));
    rotated.assert_both(&rotated.veteran);
    // The forge has the file that is in force, at the URL that the history names for it.
    rotated.assert_both(&Computer::of(&rotated.world.server));
}

#[test]
fn the_digest_of_either_signers_file_is_a_root() {
    let rotated = Rotated::at(FIRST);
    rotated.world.files.set(FIRST, Answer::Status(404));
    let files = [SignersFile::of(1, &[&person("alice")]), later(5).artifact(1, &[&person("bob")])];
    for file in files {
        let digest = Sha512::of(&file.bytes()).to_prefixed();
        for version in ["1.0", "2.0"] {
            let newcomer = Computer::of(&rotated.world.server);
            rotated.download(&newcomer, version).json_error(3);
            let url = rotated.world.files.url(&format!("/acme/app/{version}/app"));
            newcomer.run(&["download", &url, "--signers-digest", &digest]).ok();
        }
    }
}

#[test]
fn a_proposal_under_way_at_the_same_url_is_no_root_for_a_newcomer_but_the_digest_is() {
    let (alice, bob) = (person("alice"), person("bob"));
    let first = SignersFile::of(1, &[&alice]);
    let world = World::with_project(&first, &[&alice]);
    add_files(&world, "acme/app/1.0", &[("app", b"old")], &[&alice]);
    world.propose(&alice, "acme/app", &later(5).artifact(1, &[&bob])).ok();
    let newcomer = Computer::of(&world.server);
    let url = world.files.url("/acme/app/1.0/app");
    newcomer.download(&url).failed(3).says(&["--signers-digest", "under way"]);
    let digest = Sha512::of(&first.bytes()).to_prefixed();
    newcomer.run(&["download", &url, "--signers-digest", &digest]).ok();
}
