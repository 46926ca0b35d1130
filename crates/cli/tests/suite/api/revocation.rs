//! POST /v1/revoke: spec §3 and §4.9, D20.

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::support::{Person, SignersFile, World, days_ago, people::now, world::revoke_body};

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
fn a_complete_file_is_revoked_by_one_authorised_key() {
    let (alice, ..) = people();
    let (world, index) = signed();
    let signatures = world.read(&format!("{index}.signatures.json"));
    let document = world.revocation_of(&index, "key leaked");
    assert_eq!(world.revoke_with(&alice, &index, &document).ok(), done());

    assert_eq!(world.read(&format!("{index}.revocation.json")), document.as_bytes());
    assert_eq!(world.read(&format!("{index}.signatures.json.revoked")), signatures);
    world.file(&format!("{index}.signatures.json")).error(404);
    let by = world.read_json(&format!("{index}.revocation.json.signatures.json"));
    assert_eq!(by["entries"][alice.key()]["signature"], json!(alice.sign_bytes(document.as_bytes())));
    assert!(world.exists(&format!("{index}.revocation.json.signers.json")));
    assert!(world.exists(&index), "the file itself stays readable");
}

#[test]
fn a_file_is_revoked_only_once() {
    let (alice, ..) = people();
    let (world, index) = signed();
    world.revoke(&alice, &index).ok();
    let before = world.git().commit_count();
    world.revoke(&alice, &index).error(400);
    world.revoke_with(&alice, &index, &world.revocation_of(&index, "again")).error(400);
    assert_eq!(world.git().commit_count(), before);
}

#[test]
fn a_file_that_still_collects_cannot_be_revoked() {
    let (alice, bob, _) = people();
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let index = world.add_release(&alice, "acme/app/v1");
    for _ in 0..2 {
        let message = world.revoke(&alice, &index).error(409);
        assert_eq!(message, format!("File has not been fully signed: {index}"));
        let _ = world.sign(&alice, &index);
    }
    assert_eq!(world.sign(&bob, &index).ok(), json!({ "is_complete": true }), "the refusal changed nothing");
}

#[test]
fn an_absent_file_is_404_and_an_empty_path_400() {
    let (alice, ..) = people();
    let (world, index) = signed();
    let document = world.revocation_of(&index, "x");
    world.revoke_with(&alice, &world.index_path("acme/app/none"), &document).error(404);
    world.revoke_with(&alice, "", &document).error(400);
    world.revoke_with(&alice, "a/../b", &document).refused(400, "path traversal");
}

#[test]
fn signers_files_are_rotated_not_revoked() {
    let (alice, ..) = people();
    let (world, _) = signed();
    world.revoke(&alice, &world.active_path("acme/app")).error(400);
}

#[test]
fn who_is_not_authorised_cannot_revoke() {
    let (alice, bob, carol) = people();
    let file = SignersFile::of(1, &[&alice]).admin(1, &[&bob]).master(1, &[&carol]);
    let world = World::with_project(&file, &[&alice, &bob, &carol]);
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    for person in [&alice, &carol, &Person::named("mallory")] {
        world.revoke(person, &index).error(400);
    }
    assert_eq!(
        world.revoke(&bob, &index).ok(),
        done(),
        "the admins revoke where no revocation keys are named"
    );
}

#[test]
fn without_explicit_revocation_keys_one_key_is_enough_whatever_the_thresholds() {
    let (alice, bob, _) = people();
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let index = world.add_signed_release("acme/app/v1", &[&alice, &bob]);
    assert_eq!(world.revoke(&bob, &index).ok(), done());
}

#[test]
fn explicit_revocation_keys_revoke_and_the_admins_do_not() {
    let (alice, bob, _) = people();
    let file = SignersFile::of(1, &[&alice]).revocation(1, &[&bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    world.revoke(&alice, &index).error(400);
    assert_eq!(world.revoke(&bob, &index).ok(), done());
}

#[test]
fn the_current_signers_file_decides_who_may_revoke() {
    let (alice, bob, _) = people();
    let (world, index) = signed();
    let next = SignersFile::dated(days_ago(1)).artifact(1, &[&bob]);
    world.rotate("acme/app", &next, &[&alice, &bob]);
    world.revoke(&alice, &index).error(400);
    assert_eq!(world.revoke(&bob, &index).ok(), done());
}

#[test]
fn the_signature_is_over_the_document_as_sent() {
    let (alice, bob, _) = people();
    let (world, index) = signed();
    let document = world.revocation_of(&index, "key leaked");
    let good = revoke_body(&alice, &index, &document);
    for (field, value) in [
        ("signature", json!(alice.sign_bytes(b"other"))),
        ("signature", json!(bob.sign_bytes(document.as_bytes()))),
        ("signature", json!("x")),
        ("signature", json!("AAAA")),
        ("signature", Value::Null),
        ("public_key", json!("x")),
        ("public_key", json!(bob.body_key())),
        ("public_key", Value::Null),
        ("revocation_json", json!(format!("{document} "))),
        ("revocation_json", serde_json::from_str(&document).unwrap()),
        ("file_path", Value::Null),
    ] {
        let mut body = good.clone();
        body[field] = value;
        world.post_as(&alice, "/v1/revoke", &body).error(400);
    }
    world.post_as(&alice, "/v1/revoke", &good).ok();
}

#[test]
fn the_document_is_strict() {
    let (alice, ..) = people();
    let (world, index) = signed();
    let time = now().to_whole_seconds().to_string();
    for document in [
        String::new(),
        "x".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        json!({ "reason": "x" }).to_string(),
        json!({ "timestamp": time }).to_string(),
        json!({ "reason": "", "timestamp": time }).to_string(),
        json!({ "reason": "x".repeat(1001), "timestamp": time }).to_string(),
        json!({ "reason": 7, "timestamp": time }).to_string(),
        json!({ "reason": "x", "timestamp": "yesterday" }).to_string(),
        json!({ "reason": "x", "timestamp": 1.5 }).to_string(),
        json!({ "reason": "x", "timestamp": time, "more": 1 }).to_string(),
        json!({ "reason": "x", "timestamp": time, "initiator": Person::named("bob").key() }).to_string(),
        format!(r#"{{"reason":"x","reason":"x","timestamp":"{time}"}}"#),
        format!("\u{feff}{}", json!({ "reason": "x", "timestamp": time })),
    ] {
        let reply = world.revoke_with(&alice, &index, &document);
        assert_eq!(reply.status, 400, "{document}: {}", reply.text());
        reply.error(400);
    }
    let longest = json!({ "reason": "ü".repeat(1000), "timestamp": 1_700_000_000, "initiator": alice.key() });
    world.revoke_with(&alice, &index, &longest.to_string()).ok();
}

#[test]
fn a_subject_digest_must_be_the_files() {
    let (alice, ..) = people();
    let (world, index) = signed();
    let other = Sha512::of(b"another file").to_prefixed();
    let document = json!({ "reason": "x", "timestamp": 1_700_000_000, "subject_digest": other }).to_string();
    world.revoke_with(&alice, &index, &document).refused(400, "digest");
    let document = document.replace("sha512:", "sha256:");
    world.revoke_with(&alice, &index, &document).error(400);
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
fn a_document_with_subject_digest_may_be_relayed() {
    let (alice, ..) = people();
    let (world, index) = signed();
    let body = revoke_body(&alice, &index, &world.revocation_of(&index, "x"));
    assert_eq!(world.post_as(&Person::named("relay"), "/v1/revoke", &body).ok(), done());
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

#[test]
fn one_document_is_pending_at_a_time_and_the_refusal_names_it() {
    let (_, bob, carol) = people();
    let (world, index) = two_of_three();
    world.revoke_with(&bob, &index, &world.revocation_of(&index, "the first reason"));
    let other = world.revocation_of(&index, "another reason");
    let message = world.revoke_with(&carol, &index, &other).error(409);
    let names_it =
        message.contains("the first reason") || message.contains(&format!("{index}.revocation.json.pending"));
    assert!(names_it, "{message}");
}

#[test]
fn with_a_threshold_the_subject_digest_is_required() {
    let (_, bob, _) = people();
    let (world, index) = two_of_three();
    let document = json!({ "reason": "x", "timestamp": 1_700_000_000 }).to_string();
    world.revoke_with(&bob, &index, &document).refused(400, "subject_digest");
}

#[test]
fn the_initiator_is_the_one_who_posts_the_document_first() {
    let (_, bob, carol) = people();
    let (world, index) = two_of_three();
    let digest = Sha512::of(&world.read(&index)).to_prefixed();
    let document = json!({
        "reason": "x", "timestamp": 1_700_000_000, "subject_digest": digest, "initiator": bob.key(),
    });
    world.revoke_with(&carol, &index, &document.to_string()).error(400);
    assert_eq!(world.revoke_with(&bob, &index, &document.to_string()).status, 202);
    assert_eq!(world.revoke_with(&carol, &index, &document.to_string()).ok(), done());
}

#[test]
fn signatures_of_keys_that_were_rotated_out_do_not_count() {
    let (alice, bob, carol) = people();
    let dave = Person::named("dave");
    let (world, index) = two_of_three();
    let document = world.revocation_of(&index, "by bob");
    assert_eq!(world.revoke_with(&bob, &index, &document).status, 202);
    let next = SignersFile::dated(days_ago(1)).artifact(1, &[&alice]).revocation(2, &[&carol, &dave]);
    world.rotate("acme/app", &next, &[&alice]);

    // No signer that still counts has signed the pending document: it can be replaced.
    let fresh = world.revocation_of(&index, "by carol");
    assert_eq!(world.revoke_with(&carol, &index, &fresh).status, 202);
    world.revoke_with(&bob, &index, &fresh).error(400);
    assert_eq!(world.revoke_with(&dave, &index, &fresh).ok(), done());
    assert_eq!(world.read(&format!("{index}.revocation.json")), fresh.as_bytes());
}

#[test]
fn a_revocation_under_way_survives_restart_and_kill() {
    let (_, bob, carol) = people();
    let (mut world, index) = two_of_three();
    let document = world.revocation_of(&index, "key leaked");
    assert_eq!(world.revoke_with(&bob, &index, &document).status, 202);
    world.server.restart();
    world.server.crash_and_restart();
    world.revoke_with(&bob, &index, &document).error(409);
    assert_eq!(world.revoke_with(&carol, &index, &document).ok(), done());
    world.server.crash_and_restart();
    world.revoke_with(&carol, &index, &document).error(400);
}
