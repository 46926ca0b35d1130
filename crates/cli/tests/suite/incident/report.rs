//! What keys touched, told the same by a server, a mirror and a clone.

use serde_json::{Value, json};

use super::scene::{ask, decisive, expect, start_team, team_file};
use crate::support::mirrors::{await_same, start_mirror, url_of};
use crate::support::signers::{named_group, named_signer};
use crate::support::{
    Git, SignersFile, World, client::Computer, days_ago, metrics::free_address, person, seconds_from_now,
};

/// Which releases, signers files and revocations are open, and whether the keys can complete them.
#[track_caller]
fn open(report: &Value) -> Vec<(String, String, bool)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let list = report["open"].as_array().expect("a list").iter();
    let short = |path: &Value| {
        let path = text(path);
        let dir = path.trim_end_matches("/svc.index.json").trim_end_matches("/svc.signers.json").to_owned();
        dir.rsplit('/').next().expect("a name").to_owned()
    };
    list.map(|one| (text(&one["kind"]), short(&one["file_path"]), one["completable"] == json!(true)))
        .collect()
}

#[track_caller]
fn listed(report: &Value) -> Vec<(String, Value, String)> {
    let list = report["listed"].as_array().expect("a list").iter();
    list.map(|one| {
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        (text("name"), one["roles"].clone(), text("standing"))
    })
    .collect()
}

#[test]
fn one_key_and_several_are_told_the_same_by_server_mirror_data_directory_and_clone() {
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let world = start_team();
    world.add_signed_release("acme/app/1.0", &[&alice, &bob]);
    world.add_signed_release("acme/app/2.0", &[&alice, &carol]);
    let third = world.add_signed_release("acme/app/3.0", &[&bob, &carol]);
    let fourth = world.add_release(&alice, "acme/app/4.0");
    world.sign(&alice, &fourth).ok();
    world.add_release(&alice, "acme/app/5.0");
    // A revocation in force, and one that bob began.
    let revocation = world.revocation_of(&third, "it leaks");
    world.revoke_with(&bob, &third, &revocation);
    world.revoke_with(&carol, &third, &revocation).ok();
    let first = world.index_path("acme/app/1.0");
    world.revoke_with(&bob, &first, &world.revocation_of(&first, "it does not start"));
    // A proposal that bob signed.
    world.propose(&alice, "acme/app", &team_file().redated(days_ago(5))).ok();
    world.sign(&bob, &world.pending_path("acme/app")).ok();

    let mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    let computer = Computer::of(&world.server);
    let clone = computer.path("clone");
    world.git().run(&["clone", "--quiet", ".", clone.to_str().unwrap()]);
    let repository = world.server.repository();
    let (repository, clone) = (repository.to_str().unwrap().to_owned(), clone.to_str().unwrap().to_owned());
    let offline = Computer::offline();
    let sources = |args: &[&str]| {
        let mut args = args.to_vec();
        let told = ask(&computer, &args);
        assert_eq!(ask(&Computer::of(&mirror), &args), told, "the mirror");
        args.extend(["--repository", &repository]);
        assert_eq!(ask(&offline, &args), told, "the repository");
        *args.last_mut().unwrap() = &clone;
        assert_eq!(ask(&offline, &args), told, "a clone");
        told
    };

    let told = sources(&[&bob.key()]);
    let roles = json!(["artifact", "admin", "revocation"]);
    assert_eq!(listed(&told), [("bob".to_owned(), roles, "in force".to_owned())]);
    assert_eq!(decisive(&told["releases"]), expect(&[("1.0", true), ("3.0", true)]));
    assert_eq!(decisive(&told["revocations"]), expect(&[("3.0", true)]));
    assert_eq!(told["revocations"][0]["reason"], json!("it leaks"));
    assert_eq!(told["rotations"].as_array().unwrap().len(), 1);
    assert_eq!(told["rotations"][0]["needed_as"], json!(["a key of the first file"]));
    assert_eq!(told["alone"], json!([]));
    assert_eq!(told["can_register"], json!(true));
    let of = |kind: &str, name: &str, can: bool| (kind.to_owned(), name.to_owned(), can);
    let expected = [
        of("signers", "svc.signers.pending", false),
        of("release", "4.0", true),
        of("release", "5.0", false),
        of("revocation", "1.0", false),
    ];
    assert_eq!(open(&told), expected);

    // With a second key they do everything.
    let told = sources(&[&bob.key(), &carol.key()]);
    assert_eq!(told["alone"], json!(["release", "rotate the signers", "revoke"]));
    assert_eq!(decisive(&told["releases"]), expect(&[("1.0", true), ("2.0", true), ("3.0", true)]));
    assert!(open(&told).iter().all(|(_, _, can)| *can), "{told}");

    // People get the same, and nothing was changed by asking.
    let before = world.git().commit_count();
    let shown = computer.run(&["incident", "--steal", &bob.key()]).ok();
    shown.says(&[
        &world.id("acme/app"),
        "artifact signer, admin, revoker",
        "2 of them",
        "release 4.0",
        "these keys can complete it",
    ]);
    assert_eq!(world.git().commit_count(), before);
}

#[test]
fn a_mirror_that_does_not_have_everything_gives_no_all_clear() {
    let origin = format!("http://{}", free_address());
    let mirror = start_mirror(&origin);
    let asked = Computer::of(&mirror).run(&["incident", "--steal", &person("bob").key()]);
    assert_eq!(asked.code, 3, "{asked:?}");
    let words = ["not everything could be read", &format!("received nothing from {origin}")];
    asked.says(&words).says_nothing_of(&["signed nothing", "nothing to rotate"]);
    let report =
        Computer::of(&mirror).run(&["incident", "--steal", &person("bob").key(), "--json"]).json_error(3);
    assert_eq!(report["complete"], json!(false), "{report}");
}

#[test]
fn what_cannot_be_verified_is_told_beside_the_rest() {
    let [alice, bob] = ["alice", "bob"].map(person);
    let world = World::with_project(&SignersFile::of(1, &[&alice, &bob]), &[&alice, &bob]);
    let index = world.add_signed_release("acme/app/1.0", &[&bob]);
    let second = world.add_signed_release("acme/app/2.0", &[&bob]);
    world.activate("acme/tool", &SignersFile::of(1, &[&bob]), &[&bob]);
    let computer = Computer::offline();
    let clone = computer.path("clone.git");
    world.git().run(&["clone", "--quiet", "--mirror", ".", clone.to_str().unwrap()]);
    let git = Git::at(&clone);
    // An index is another one than was signed, a release has lost its signers, and a history is no history.
    git.commit_file(&index, &[world.read(&index), b" ".to_vec()].concat());
    git.commit_file(&format!("{second}.signers.json"), b"{}");
    git.commit_file(&format!("{}/svc.signers.history/000001.json", world.id("acme/tool")), b"{}");
    let key = bob.key();
    let args = ["incident", "--steal", key.as_str(), "--repository", clone.to_str().unwrap()];
    let error = computer.run(&[&args[..], &["--json"]].concat()).json_error(3);
    assert_eq!(error["projects"].as_array().unwrap().len(), 1, "{error}");
    assert_eq!(error["projects"][0]["releases"], json!([]), "a signature on other bytes counts for nothing");
    assert_eq!(error["projects"][0]["unreadable"].as_array().unwrap().len(), 1, "{error}");
    assert_eq!(
        (error["faults"].as_array().unwrap().len(), &error["complete"]),
        (1, &json!(false)),
        "{error}"
    );
    let ran = computer.run(&args);
    assert_eq!(ran.code, 3);
    ran.says(&["is artifact signer, admin", "unreadable:", "there may be more"]);
}

/// A stranger lists the key as a registrar, in a file whose time is still to come.
#[test]
fn a_stranger_keeps_no_one_from_a_report() {
    let [alice, mallory] = ["alice", "mallory"].map(person);
    let world = start_team();
    world.add_signed_release("acme/app/1.0", &[&alice, &person("bob")]);
    let registrars = json!([named_signer(&alice, "alice")]);
    let ahead = SignersFile::dated(seconds_from_now(9 * 60)).artifact(1, &[&mallory]);
    world.activate("aaa/trap", &ahead.with("registrars", registrars.clone()), &[&mallory]);
    // Before acme/app in the order of their names, and more than are told.
    let junk = SignersFile::dated(days_ago(5)).artifact(1, &[&mallory]).with("registrars", registrars);
    for n in 0..21 {
        world.activate(&format!("aaa/p{n}"), &junk, &[&mallory]);
    }
    let computer = Computer::of(&world.server);
    let repository = world.server.repository();
    for source in [&[][..], &["--repository", repository.to_str().unwrap()]] {
        let key = alice.key();
        let asking = [&["incident", "--steal", &key], source].concat();
        let shown = computer.run(&asking).failed_with(3);
        let shown =
            shown.says(&["aaa/trap", "which is not in the past", "What to do, in this order", "and 2 more"]);
        let lines: Vec<&str> = shown.stdout.lines().collect();
        let place = |word: &str| lines.iter().position(|line| line.contains(word)).expect("a line");
        assert!(place("/acme/app") < 3 && place("signed releases: 1") < place("aaa/"), "{}", shown.stdout);
        assert!(lines.len() < 60, "{}", shown.stdout);
        let told = computer.run(&[&asking[..], &["--json"]].concat()).json_error(3);
        assert_eq!(told["projects"].as_array().map(Vec::len), Some(23), "programs get all");
        assert_eq!(told["projects"][0]["project_id"], json!(world.id("acme/app")));
        assert_eq!(told["steps"].as_object().map(serde_json::Map::len), Some(1), "{}", told["steps"]);
        // Named, it is told in full.
        let named = [&["incident", "aaa/p3"], &asking[1..]].concat();
        computer.run(&named).ok().says(&["alone they can register releases", "svc.signers.json"]);
    }
}

#[test]
fn hostile_names_stay_inside_their_line() {
    let [alice, bob] = ["alice", "bob"].map(person);
    let mut group = named_group(1, &["alice", "bob"]);
    group[0]["signers"][1]["name"] = json!("bob`rm -rf $HOME` \"; rm -rf /; echo '");
    let world = World::with_project(&SignersFile::new().with("artifact_signers", group), &[&alice, &bob]);
    world.add_signed_release("acme/app/1.0", &[&bob]);
    let computer = Computer::of(&world.server);
    let shown = computer.run(&["incident", "--steal", &bob.key(), "-o", "answer"]).ok();
    let written = String::from_utf8(computer.read("answer/commands.txt")).unwrap();
    for line in written.lines() {
        assert!(line.starts_with('#') || line.starts_with("countersign "), "{line}");
        assert!(line.starts_with('#') || !line.contains("rm -rf"), "{line}");
    }
    assert!(shown.stdout.contains("rm -rf"), "the name is shown, quoted");
}
