//! GET /v1/signatures/{path} and GET /v1/pending_signatures: spec §4.4, D18, D21.

use serde_json::json;

use crate::support::{Person, SignersFile, World, days_ago};

fn people() -> (Person, Person, Person) {
    (Person::named("alice"), Person::named("bob"), Person::named("carol"))
}

#[test]
fn the_status_names_the_normalised_path() {
    let (alice, ..) = people();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_release(&alice, "acme/app/v1");
    let expected = json!({ "file_path": index, "is_complete": false });
    assert_eq!(world.status(&alice, &index).ok(), expected);
    assert_eq!(world.status(&alice, &format!("{index}/")).ok(), expected);
    let encoded = index.replace('.', "%2E").replace("acme/app", "acme%2Fapp");
    assert_eq!(world.status(&alice, &encoded).ok(), expected, "decoded once, then split");
}

#[test]
fn every_role_of_the_current_file_may_ask_and_no_one_else() {
    let (alice, bob, carol) = people();
    let dave = Person::named("dave");
    let file = SignersFile::of(1, &[&alice]).admin(1, &[&bob]).master(1, &[&carol]).revocation(1, &[&dave]);
    let world = World::with_project(&file, &[&alice, &bob, &carol, &dave]);
    let index = world.add_release(&alice, "acme/app/v1");
    for reader in [&alice, &bob, &carol, &dave] {
        world.status(reader, &index).ok();
    }
    world.status(&Person::named("mallory"), &index).error(403);
}

#[test]
fn a_pending_registration_is_shown_to_its_own_keys() {
    let (alice, bob, carol) = people();
    let world = World::start();
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice, &bob])).ok();
    let pending = world.pending_path("acme/app");
    assert_eq!(world.status(&bob, &pending).ok(), json!({ "file_path": pending, "is_complete": false }));
    world.status(&carol, &pending).error(403);
}

#[test]
fn a_key_that_was_rotated_out_loses_its_view_of_every_file() {
    let (alice, bob, carol) = people();
    let world = World::with_project(&SignersFile::of(1, &[&alice, &bob]), &[&alice, &bob]);
    let complete = world.add_signed_release("acme/app/v1", &[&alice]);
    let collecting = world.add_release(&alice, "acme/app/v2");
    let next = SignersFile::dated(days_ago(1)).artifact(1, &[&alice, &carol]);
    world.rotate("acme/app", &next, &[&alice, &carol]);
    for index in [&complete, &collecting] {
        world.status(&bob, index).error(403);
        world.status(&carol, index).ok();
    }
}

#[test]
fn an_empty_path_is_400_and_an_absent_file_404() {
    let (alice, ..) = people();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    world.status(&alice, "").error(400);
    world.status(&alice, "../x").refused(400, "path traversal");
    world.status(&alice, &world.index_path("acme/app/none")).error(404);
    world.status(&alice, "http/example.org/80/none").error(404);
    world.status(&alice, &world.id("acme/app")).error(404);
}

#[test]
fn a_revoked_file_says_so() {
    let (alice, ..) = people();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    world.revoke(&alice, &index).ok();
    let expected = json!({ "file_path": index, "is_complete": false, "revoked": true });
    assert_eq!(world.status(&alice, &index).ok(), expected);
}

#[test]
fn the_pending_list_is_sorted_and_holds_what_the_caller_may_sign_and_has_not() {
    let (alice, bob, _) = people();
    let file = SignersFile::of(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let releases: Vec<_> =
        ["acme/app/v2", "acme/app/v10", "acme/app/V1"].map(|dir| world.add_release(&alice, dir)).into();
    world.register(&alice, "aaa/other", &SignersFile::of(1, &[&alice])).ok();
    world.register(&alice, "zzz", &SignersFile::of(1, &[&alice])).ok();

    let mut expected =
        [releases.clone(), vec![world.pending_path("aaa/other"), world.pending_path("zzz")]].concat();
    expected.sort();
    assert_eq!(world.pending(&alice), expected);

    let mut for_bob = releases.clone();
    for_bob.sort();
    assert_eq!(world.pending(&bob), for_bob);
    assert_eq!(world.pending(&Person::named("mallory")), [""; 0]);

    world.sign(&bob, &releases[0]).ok();
    for_bob.retain(|path| *path != releases[0]);
    assert_eq!(world.pending(&bob), for_bob);
    assert!(world.pending(&alice).contains(&releases[0]));
    world.sign(&alice, &releases[0]).ok();
    assert!(!world.pending(&alice).contains(&releases[0]), "complete files are not pending");
}

#[test]
fn the_answer_of_the_pending_list_has_one_field() {
    let (alice, ..) = people();
    let world = World::start();
    assert_eq!(world.get_as(&alice, "/v1/pending_signatures").ok(), json!({ "file_paths": [] }));
}

#[test]
fn master_keys_see_signers_proposals_only() {
    let (alice, _, carol) = people();
    let file = SignersFile::of(1, &[&alice]).master(1, &[&carol]);
    let world = World::start();
    world.register(&alice, "acme/app", &file).ok();
    let pending = world.pending_path("acme/app");
    assert_eq!(world.pending(&carol), [pending.as_str()]);
    world.sign_all(&pending, &[&alice, &carol]);
    world.add_release(&alice, "acme/app/v1");
    assert_eq!(world.pending(&carol), [""; 0]);
    world.propose(&alice, "acme/app", &file.redated(days_ago(1))).ok();
    assert_eq!(world.pending(&carol), [pending]);
}

#[test]
fn keys_that_may_not_sign_see_nothing_pending() {
    let (alice, bob, _) = people();
    let file = SignersFile::of(1, &[&alice]).revocation(1, &[&bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    world.add_release(&alice, "acme/app/v1");
    world.propose(&alice, "acme/app", &file.redated(days_ago(1))).ok();
    assert_eq!(world.pending(&bob), [""; 0]);
}

#[test]
fn the_pending_list_survives_a_restart() {
    let (alice, bob, _) = people();
    let mut world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let first = world.add_release(&alice, "acme/app/v1");
    let second = world.add_release(&alice, "acme/app/v2");
    world.sign(&alice, &first).ok();
    world.server.restart();
    assert_eq!(world.pending(&alice), [second.as_str()]);
    assert_eq!(world.pending(&bob), [first, second]);
}
