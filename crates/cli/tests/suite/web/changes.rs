//! What pages say about changes of signers: proposed ones, and those that were.

use serde_json::json;

use super::team::{Team, named};
use crate::support::html::{Html, open, short_key, visit};
use crate::support::{Person, SignersFile, World, days_ago, signers::signer};

/// In the sentences about what changes.
#[track_caller]
fn assert_no_key_twice(page: &Html) {
    let sentences =
        page.text.split("<li class=\"wrap").skip(1).map(|rest| rest.split("</li>").next().unwrap());
    let mut count = 0;
    for sentence in sentences {
        let mut keys: Vec<&str> =
            sentence.split("title=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all, "{sentence}");
        count += all;
    }
    assert!(count > 0, "{}", page.words);
}

#[test]
fn a_first_registration_shows_who_is_missing() {
    let team = Team::new();
    let world = World::start();
    world.register(&team.bob, "acme/app", &team.file()).ok();
    let pending = world.pending_path("acme/app");
    world.sign(&team.bob, &pending).ok();
    let project = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    project.says(&["registering", "The first signers file waits", "1 of 3 signatures", "Whom to ask next:"]);
    project.links_to(&format!("/p/{pending}")).lacks(&["Signers history", "Trust starts"]);
    let page = open(&world.server, &format!("/p/{pending}"));
    page.says(&[
        "Everyone who is listed agrees",
        "1 of 3 signatures any 3 of 3 keys A alice",
        "Proposed by bob",
        &format!("countersign sign {pending} --server http"),
    ]);
}

#[test]
fn a_proposal_shows_what_it_changes_and_each_condition() {
    let team = Team::new();
    let world = World::with_project(
        &team.file().admin(1, &[&team.alice]).master(1, &[&Person::named("dave")]),
        &[&team.alice, &team.bob, &team.carol, &Person::named("dave")],
    );
    let erin = Person::named("erin");
    let people = [named(&team.alice, "alice"), named(&erin, "bob")];
    let next = SignersFile::dated(days_ago(5))
        .with("artifact_signers", json!([{ "threshold": 1, "signers": people }]))
        .admin(1, &[&team.alice, &erin]);
    world.propose(&team.alice, "acme/app", &next).ok();
    let pending = world.pending_path("acme/app");
    world.sign(&team.alice, &pending).ok();
    let page = open(&world.server, &format!("/p/{pending}"));
    page.says(&[
        "WARNING: the name bob now stands for another key.",
        "WEAKER: 1 key can release; before, it took 2 keys",
        "met Enough of those in force agree",
        "met Enough of those proposed agree",
        "open Everyone who joins agrees 0 of 1 signature any 1 of 1 key",
        &short_key(&erin),
        "not yet",
    ]);
    assert_no_key_twice(&page);
    let project = open(&world.server, &format!("/p/{}", world.id("acme/app")));
    project.says(&[
        "A change of the signers waits for signatures",
        "WEAKER",
        "open Everyone who joins agrees",
    ]);
    world.sign(&erin, &pending).ok();
    let gone = visit(&world.server, &format!("/p/{pending}"));
    assert_eq!(gone.status, 404);
    gone.says(&["it may be in force already"]).links_to(&format!("/p/{}", world.id("acme/app")));
}

#[test]
fn the_history_shows_every_step_newest_first() {
    let team = Team::new();
    let world = team.world();
    let next = team.file().redated(days_ago(5)).with(
        "artifact_signers",
        json!([{ "threshold": 1, "signers": [named(&team.alice, "alice"), named(&team.bob, "bob")] }]),
    );
    world.rotate("acme/app", &next, &[&team.alice, &team.bob]);
    let target = format!("/p/{}/svc.signers.history.json", world.id("acme/app"));
    let page = open(&world.server, &target);
    page.says(&[
        "2 signers files have been in force",
        "in force What changed",
        "WEAKER: 1 key can release; before, it took 2 keys",
        &format!("carol {} leaves, and was artifact signer, admin and revoker", short_key(&team.carol)),
        "Artifact signers: any 2 of 3 keys becomes any 1 of 2 keys Who agreed",
    ]);
    page.says(&["What it says Artifact signers: any 2 of 3 keys: alice", "Who agreed A alice"]);
    page.lacks(&["; removes", "; adds"]);
    assert_no_key_twice(&page);
    assert!(page.words.find("Step 2").unwrap() < page.words.find("Step 1").unwrap());
    page.says(&[&format!("countersign chain {} --server", world.id("acme/app"))]);
}

#[test]
fn a_change_is_told_once_and_names_each_key_once() {
    let team = Team::new();
    let world = team.world();
    let renamed = json!([{ "threshold": 2, "signers": [
        named(&team.alice, "alice-2"), signer(&team.bob.key()), named(&team.carol, "carol")
    ] }]);
    let next = team.file().redated(days_ago(5)).with("artifact_signers", renamed).admin(1, &[&team.alice]);
    world.propose(&team.alice, "acme/app", &next).ok();
    let pending = open(&world.server, &format!("/p/{}", world.pending_path("acme/app")));
    let key = |person: &Person| short_key(person);
    pending.says(&[
        &format!("alice {} gets another name: alice-2", key(&team.alice)),
        &format!("bob {} loses its name", key(&team.bob)),
        &format!("bob {} stays, is no longer admin and revoker", key(&team.bob)),
        &format!("Admins are listed now: any 1 of 1 key: alice {}", key(&team.alice)),
    ]);
    assert_no_key_twice(&pending);
    // One who takes another's place is told by the two lines about them alone.
    let dave = Person::named("dave");
    let people = [named(&team.alice, "alice"), named(&team.bob, "bob"), named(&dave, "dave")];
    let replaced = json!([{ "threshold": 2, "signers": people }]);
    let next = team.file().redated(days_ago(4)).with("artifact_signers", replaced);
    world.propose(&team.alice, "acme/app", &next).ok();
    let pending = open(&world.server, &format!("/p/{}", world.pending_path("acme/app")));
    pending.says(&[
        &format!("dave {} joins as", key(&dave)),
        &format!("carol {} leaves, and was", key(&team.carol)),
    ]);
    pending.lacks(&["Artifact signers: ", "; adds", "; removes"]);
    assert_no_key_twice(&pending);
}
