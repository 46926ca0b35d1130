//! New signers: the difference in words, whose consent is missing, offline as online, and downloads before and after.

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::support::client::{Computer, Ran, add_files};
use crate::support::{Answer, SignersFile, World, days_ago, person};

fn later(days: i64) -> SignersFile {
    SignersFile::dated(days_ago(days))
}

/// A project of alice that passes to bob: `1.0` is hers, `2.0` his. The new file is at `path`.
struct Rotated {
    world: World,
    veteran: Computer,
}

const FIRST: &str = "/acme/app/svc.signers.json";

impl Rotated {
    #[track_caller]
    fn at(path: &str) -> Self {
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
        Self { world, veteran }
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

    // The digest of either signers file is a root.
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
fn old_and_new_releases_are_downloaded_with_and_without_a_pin_from_another_url() {
    let rotated = Rotated::at("/acme/app/svc.signers/2.json");
    rotated.assert_both(&rotated.veteran);
    rotated.assert_both(&Computer::of(&rotated.world.server));
    // Only the new signers file is published: the forge has the file that is in force, at the URL that the history names for it.
    rotated.assert_both(&Computer::of(&rotated.world.server));
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

#[test]
fn a_proposal_is_shown_offline_as_it_is_online() {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    let (connected, offline) = (Computer::of(&world.server), Computer::offline());
    let pending = world.pending_path("acme/app");
    connected.run_as("alice", &["sign", &pending, "--export", "export.json"]).ok();
    connected.carry(&offline, &["export.json"]);
    let offline_shown =
        offline.run_as("bob", &["sign", "--detached", "export.json", "-o", "signatures.json", "--yes"]).ok();
    let online_shown = connected.run_as("alice", &["sign", &pending, "--yes"]).ok();
    let shown: Vec<_> = online_shown.stderr.lines().filter(|line| !line.starts_with("Signed")).collect();
    assert!(shown.len() > 5, "{shown:?}");
    // All but which of them the reader is.
    let told = offline_shown.stderr.replace(" (you)", "");
    for line in shown {
        let line = line.replace(" (you)", "");
        assert!(told.contains(&line), "{line:?} is missing: {offline_shown:?}");
    }
    offline.carry(&connected, &["signatures.json"]);
    let submitted = connected.json_as("alice", &["sign", "--submit", "signatures.json"]);
    assert_eq!(submitted["signed"][0]["is_complete"], true);
}
