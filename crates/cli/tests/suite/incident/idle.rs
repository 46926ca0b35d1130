//! When each key last signed: read from a clone as from a server, and what a year without signatures means.

use serde_json::{Value, json};

use crate::support::client::{Computer, Ran};
use crate::support::{SignersFile, World, machine_clock::MachineClock, person};
use crate::support::{html::key_page, html::open, signers::named_group};

use super::scene::start_team;

const DAY: i64 = 86_400;

#[test]
fn a_clone_says_the_same_as_a_server() {
    let world = start_team();
    world.add_signed_release("acme/app/1.0", &["alice", "bob"].map(person).each_ref());
    let (computer, repository) = (Computer::of(&world.server), world.server.repository());
    let copy = ["--repository", repository.to_str().unwrap()];
    let key = person("bob").key();
    for args in [
        &["signers", "check", "acme/app"][..],
        &["drill", "acme/app", "--lose", "alice", "--steal", "bob"],
        &["incident", "acme/app", "--steal", "bob"],
        &["incident", "--steal", &key],
    ] {
        let (offline, online) = (Computer::offline().json(&[args, &copy].concat()), computer.json(args));
        // What an incident asks people to do begins with where they look.
        let is_incident = args[0] == "incident";
        assert_eq!(offline["projects"], online["projects"], "{args:?}");
        assert!(is_incident || offline == online, "{offline} {online}");
    }
    let unknown = [&["incident", "acme/app", "--steal", "eve"], &copy[..]].concat();
    computer
        .run(&unknown)
        .failed(2)
        .says(&["no signers file there lists \"eve\"", "\"alice\" (", "\"carol\" ("]);
    computer.run(&[&["incident", "acme/none", "--steal", "bob"], &copy[..]].concat()).failed_with(2);
    Computer::offline().run(&["incident", "--steal", "bob", "--repository", "/nowhere"]).failed_with(1);
}

#[test]
fn a_drill_plays_several_projects_each_with_the_keys_that_it_lists() {
    let world = start_team();
    let [alice, erin] = ["alice", "erin"].map(person);
    let lib = SignersFile::new().with("artifact_signers", named_group(1, &["alice", "erin"]));
    world.activate("acme/lib", &lib, &[&alice, &erin]);
    let computer = Computer::of(&world.server);
    let drill = ["drill", "acme/app", "acme/lib", "--steal", "alice", "--lose", "erin"];
    let played = computer.run(&[&drill[..], &["--json"]].concat()).ok();
    let (alice, erin) = (alice.key(), erin.key());
    let fields = |project: Value| {
        json!([project["source"], project["stolen"], project["lost"], project["taken_over"]])
    };
    let played: Vec<Value> =
        played.stdout.lines().map(|line| fields(serde_json::from_str(line).unwrap())).collect();
    let expected = [json!(["acme/app", [alice], [], false]), json!(["acme/lib", [alice], [erin], true])];
    assert_eq!(played, expected);
    computer.run(&drill).ok().says(&["acme/app\n", "acme/lib\n", "Taken over"]);
    let refused = computer.run(&["drill", "acme/app", "--steal", &erin]).failed(2);
    refused.says(&["no signers file there lists", "alice", "carol"]);
}

#[test]
fn after_a_year_the_lock_out_is_foreseen_by_the_client_and_on_pages() {
    let Some(clock) = MachineClock::new() else { return };
    let people = ["alice", "bob", "carol", "dave", "erin"].map(person);
    let everyone: Vec<_> = people.iter().collect();
    let world = World::start_with(|launch, _| clock.give_to(launch.arg("--dev")));
    world.activate("acme/app", &SignersFile::of(2, &everyone), &everyone);
    let computer = Computer::of(&world.server);
    let check = |ahead: i64| -> Ran {
        let client = MachineClock::new().expect("there was one before");
        client.set(ahead);
        let mut command = computer.command(&["signers", "check", "acme/app"]);
        client.lend_to(&mut command);
        Ran::of(&mut command).ok()
    };
    check(364 * DAY).says_nothing_of(&["for a year"]);
    check(366 * DAY).says(&[
        "5 of 5 keys have not signed for a year: if they are lost, you are locked out",
        "no one can ever release again",
    ]);
    let page = format!("/p/{}", world.id("acme/app"));
    open(&world.server, &page).says(&["last signed"]).lacks(&["idle", "lock-out"]);
    clock.set(366 * DAY);
    open(&world.server, &page).says(&["idle", "lock-out To rotate the signers: 5 of 5 keys"]);
    clock.set(0);
    world.add_signed_release("acme/app/1.0", &[&people[0], &people[1]]);
    open(&world.server, &key_page(&people[0])).says(&[
        "It last signed something that counts", "Is this key stolen or lost?", "countersign incident",
        "needed",
    ]);
}
