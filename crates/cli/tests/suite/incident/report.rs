//! What keys touched, told by a mirror as by a server, and beside what strangers do. The rest is text
//! (`client_incident.txt`, `client_plan.txt`).

use serde_json::json;

use crate::support::mirrors::{await_same, start_mirror, url_of};
use crate::support::signers::{named_group, named_signer};
use crate::support::{
    SignersFile, World, client::Computer, days_ago, metrics::free_address, person, seconds_from_now,
};

/// Two of three sign and rotate, and any two revoke.
fn team_file() -> SignersFile {
    let group = named_group(2, &["alice", "bob", "carol"]);
    SignersFile::new().with("artifact_signers", group.clone()).with("revocation_keys", group)
}

fn start_team() -> World {
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    World::with_project(&team_file(), &[&alice, &bob, &carol])
}

#[test]
fn a_mirror_tells_the_same_as_its_server() {
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let world = start_team();
    let first = world.add_signed_release("acme/app/1.0", &[&alice, &bob]);
    let second = world.add_signed_release("acme/app/2.0", &[&bob, &carol]);
    // A release that collects, a revocation in force and one that was begun, and a proposal.
    world.sign(&alice, &world.add_release(&alice, "acme/app/3.0")).ok();
    let revocation = world.revocation_of(&second, "it leaks");
    world.revoke_with(&bob, &second, &revocation);
    world.revoke_with(&carol, &second, &revocation).ok();
    world.revoke_with(&bob, &first, &world.revocation_of(&first, "it does not start"));
    world.propose(&alice, "acme/app", &team_file().redated(days_ago(5))).ok();
    world.sign(&bob, &world.pending_path("acme/app")).ok();
    let mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    for keys in [&[bob.key()][..], &[bob.key(), carol.key()]] {
        let args: Vec<&str> =
            ["incident", "--steal"].into_iter().chain(keys.iter().map(String::as_str)).collect();
        let [told, mirrored] = [&world.server, &mirror].map(|server| Computer::of(server).json(&args));
        assert_eq!(told["projects"], mirrored["projects"]);
        assert_eq!(told["projects"].as_array().map(Vec::len), Some(1), "{told}");
    }
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
