//! POST /v1/update_signers: who may propose what (spec §4.2, D13, D15).

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::support::{Person, SignersFile, World, days_ago, seconds_from_now};

fn people() -> (Person, Person, Person) {
    (Person::named("alice"), Person::named("bob"), Person::named("carol"))
}

/// Alice and Bob sign artifacts; Alice alone is admin.
fn with_admin() -> (World, SignersFile) {
    let (alice, bob, _) = people();
    let file = SignersFile::of(1, &[&alice, &bob]).admin(1, &[&alice]);
    (World::with_project(&file, &[&alice, &bob]), file)
}

fn keys(people: &[&Person]) -> Vec<String> {
    let mut keys: Vec<_> = people.iter().map(|person| person.body_key()).collect();
    keys.sort();
    keys
}

fn required(answer: &Value) -> Vec<String> {
    let mut keys: Vec<String> = serde_json::from_value(answer["required_signers"].clone()).unwrap();
    keys.sort();
    keys
}

#[test]
fn a_proposal_lists_the_keys_that_need_to_sign_it() {
    let (alice, _, carol) = people();
    let (world, file) = with_admin();
    let next = SignersFile::dated(days_ago(1)).artifact(1, &[&alice, &carol]).admin(1, &[&alice]);
    let answer = world.propose(&alice, "acme/app", &next).ok();
    assert_eq!(answer["success"], json!(true));
    assert_eq!(answer["project_id"], json!(world.id("acme/app")));
    assert_eq!(
        answer["message"],
        json!("Signers update proposed successfully. Collect signatures to activate.")
    );
    assert_eq!(answer["signature_submission_url"], json!("/v1/signatures"));
    assert_eq!(required(&answer), keys(&[&alice, &carol]), "the added key, and the admin of both files");

    let pending = world.pending_path("acme/app");
    assert_eq!(world.read(&pending), next.bytes());
    assert_eq!(world.read(&world.active_path("acme/app")), file.bytes(), "not in effect yet");
    let metadata = world.read_json(&format!("{pending}.metadata.json"));
    assert_eq!(metadata["previous"], json!(Sha512::of(&file.bytes()).to_prefixed()));
}

#[test]
fn a_project_that_is_not_registered_must_be_registered_first() {
    let (alice, ..) = people();
    let world = World::start();
    let message = world.propose(&alice, "acme/app", &SignersFile::of(1, &[&alice])).error(400);
    assert!(message.to_lowercase().contains("register"), "{message}");
}

#[test]
fn a_project_without_an_active_signers_file_takes_no_proposal() {
    let (alice, bob, _) = people();
    let world = World::start();
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice, &bob])).ok();
    let next = SignersFile::dated(days_ago(1)).artifact(1, &[&alice]);
    world.propose(&alice, "acme/app", &next).error(400);
    assert_ne!(world.read(&world.pending_path("acme/app")), next.bytes());
}

#[test]
fn only_a_key_of_the_current_file_that_calls_itself_may_propose() {
    let (alice, bob, carol) = people();
    let (world, file) = with_admin();
    let next = file.redated(days_ago(1)).with("master_keys", json!([]));
    let next = next.without("master_keys").artifact(1, &[&carol]);
    world.propose(&carol, "acme/app", &next).error(400);
    let url = world.publish("acme/app", &next);
    let for_alice = json!({ "signers_file_url": url, "public_key": alice.body_key() });
    world.post_as(&bob, "/v1/update_signers", &for_alice).error(400);
    world.propose(&bob, "acme/app", &next).ok();
}

#[test]
fn invalid_urls_keys_and_bodies_are_refused() {
    let (alice, ..) = people();
    let (world, _) = with_admin();
    let url = world.files.url("/acme/app/svc.signers.json");
    for body in [
        json!({}),
        json!({ "signers_file_url": url }),
        json!({ "public_key": alice.body_key() }),
        json!({ "signers_file_url": url, "public_key": "x" }),
        json!({ "signers_file_url": "x", "public_key": alice.body_key() }),
        json!({ "signers_file_url": format!("{url}?x"), "public_key": alice.body_key() }),
        json!([]),
    ] {
        world.post_as(&alice, "/v1/update_signers", &body).error(400);
    }
}

#[test]
fn an_invalid_or_absent_file_is_an_upstream_failure() {
    let (alice, ..) = people();
    let (world, file) = with_admin();
    let before = world.git().commit_count();
    world.propose(&alice, "acme/app", &file.clone().with("version", json!(2))).refused(500, "version");
    let body =
        json!({ "signers_file_url": world.files.url("/acme/app/none.json"), "public_key": alice.body_key() });
    world.post_as(&alice, "/v1/update_signers", &body).refused(500, "none.json");
    assert_eq!(world.git().commit_count(), before);
}

#[test]
fn the_new_file_is_later_than_the_current_one_and_not_from_the_future() {
    let (alice, ..) = people();
    let (world, file) = with_admin();
    world.propose(&alice, "acme/app", &file).error(400);
    for date in [days_ago(20), seconds_from_now(15 * 60), seconds_from_now(24 * 3600)] {
        world.propose(&alice, "acme/app", &file.clone().redated(date)).error(400);
    }
    assert!(!world.exists(&world.pending_path("acme/app")));
    world.propose(&alice, "acme/app", &file.redated(seconds_from_now(8 * 60))).ok();
}

#[test]
fn proposing_the_pending_bytes_again_changes_nothing_and_says_who_is_missing() {
    let (alice, bob, carol) = people();
    let (world, _) = with_admin();
    let next = SignersFile::dated(days_ago(1)).artifact(1, &[&alice, &carol]).admin(1, &[&alice]);
    world.propose(&alice, "acme/app", &next).ok();
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    let before = world.git().commit_count();
    for person in [&bob, &alice] {
        let answer = world.propose(person, "acme/app", &next).ok();
        assert_eq!(required(&answer), keys(&[&carol]));
    }
    assert_eq!(world.git().commit_count(), before);
    assert_eq!(world.sign(&carol, &world.pending_path("acme/app")).ok(), json!({ "is_complete": true }));
}

#[test]
fn only_an_admin_or_master_key_replaces_a_pending_proposal() {
    let (alice, bob, carol) = people();
    let file = SignersFile::of(1, &[&alice, &bob]).admin(1, &[&alice]).master(1, &[&carol]);
    let world = World::with_project(&file, &[&alice, &bob, &carol]);
    let dated = |days: i64| file.clone().redated(days_ago(days));
    world.propose(&bob, "acme/app", &dated(5)).ok();
    world.propose(&bob, "acme/app", &dated(4)).error(409);
    assert_eq!(world.read(&world.pending_path("acme/app")), dated(5).bytes());
    world.propose(&alice, "acme/app", &dated(3)).ok();
    world.propose(&carol, "acme/app", &dated(2)).ok();
    assert_eq!(world.read(&world.pending_path("acme/app")), dated(2).bytes());
}

#[test]
fn a_replaced_proposal_comes_back_with_its_metadata_and_signatures() {
    let (alice, bob, carol) = people();
    let file = SignersFile::of(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let pending = world.pending_path("acme/app");
    let first = SignersFile::dated(days_ago(5)).artifact(2, &[&alice, &bob, &carol]);
    let second = SignersFile::dated(days_ago(4)).artifact(1, &[&alice, &bob]);

    world.propose(&alice, "acme/app", &first).ok();
    world.sign(&carol, &pending).ok();
    world.sign(&alice, &pending).ok();
    let metadata = world.read(&format!("{pending}.metadata.json"));

    world.propose(&bob, "acme/app", &second).ok();
    let short = &Sha512::of(&first.bytes()).to_string()[..16];
    let superseded = format!("{}/svc.signers.superseded/{short}/svc.signers.json", world.id("acme/app"));
    assert_eq!(world.read(&superseded), first.bytes());
    assert_eq!(world.read(&format!("{superseded}.metadata.json")), metadata);
    world.sign(&bob, &superseded).error(400);
    world.status(&bob, &superseded).error(404);

    let answer = world.propose(&bob, "acme/app", &first).ok();
    assert_eq!(required(&answer), keys(&[&bob]), "Alice's and Carol's signatures still count");
    assert_eq!(world.read(&format!("{pending}.metadata.json")), metadata);
    world.file(&superseded).error(404);
    world.sign(&alice, &pending).error(409);
    assert_eq!(world.sign(&bob, &pending).ok(), json!({ "is_complete": true }));

    assert_eq!(world.read(&world.active_path("acme/app")), first.bytes());
    let left = world.git().paths();
    assert!(left.iter().all(|path| !path.contains("superseded")), "activation removes them: {left:?}");
}
