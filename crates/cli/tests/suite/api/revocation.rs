//! POST /v1/revoke: spec §3 and §4.9, D20.

use serde_json::{Value, json};

use crate::support::{Person, SignersFile, World, world::revoke_body};

fn people() -> (Person, Person, Person) {
    (Person::named("alice"), Person::named("bob"), Person::named("carol"))
}

/// A project of Alice's with one signed release.
fn signed() -> (World, String) {
    let (alice, ..) = people();
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    (world, index)
}

/// As `signed`, with two of Bob, Carol and Dave to revoke.
fn two_of_three() -> (World, String) {
    let (alice, bob, carol) = people();
    let dave = Person::named("dave");
    let file = SignersFile::of(1, &[&alice]).revocation(2, &[&bob, &carol, &dave]);
    let world = World::with_project(&file, &[&alice, &bob, &carol, &dave]);
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    (world, index)
}

fn recorded() -> Value {
    json!({ "success": true, "message": "Revocation recorded. More signatures are required.", "revoked": false })
}

fn done() -> Value {
    json!({ "success": true, "message": "File revoked successfully", "revoked": true })
}

#[test]
fn a_document_without_subject_digest_must_be_sent_by_its_signer() {
    let (alice, ..) = people();
    let (world, index) = signed();
    let document = json!({ "reason": "x", "timestamp": 1_700_000_000 }).to_string();
    let body = revoke_body(&alice, &index, &document);
    world.post_as(&Person::named("relay"), "/v1/revoke", &body).error(400);
    world.post_as(&alice, "/v1/revoke", &body).ok();
    let request = world.read_json(&format!("{index}.revocation.json.request.json"));
    assert_eq!(request["payload"], json!(body.to_string()));
}

#[test]
fn revocation_keys_with_a_threshold_revoke_together() {
    let (_, bob, carol) = people();
    let (world, index) = two_of_three();
    let document = world.revocation_of(&index, "key leaked");
    let first = world.revoke_with(&bob, &index, &document);
    assert_eq!((first.status, first.json()), (202, recorded()));
    assert!(world.is_complete(&bob, &index), "not revoked yet");
    assert_eq!(world.read(&format!("{index}.revocation.json.pending")), document.as_bytes());
    world.file(&format!("{index}.revocation.json")).error(404);

    world.revoke_with(&bob, &index, &document).error(409);
    assert_eq!(world.revoke_with(&carol, &index, &document).ok(), done());
    world.file(&format!("{index}.revocation.json.pending")).error(404);
    world.file(&format!("{index}.revocation.json.signatures.json.pending")).error(404);
    assert_eq!(world.status(&bob, &index).ok()["revoked"], json!(true));
    world.revoke_with(&Person::named("dave"), &index, &document).error(400);
}
