//! POST /v1/signatures: spec §3 and §4.3, D17.

use serde_json::{Value, json};

use crate::support::{Person, SignersFile, World, world::checksums};

fn people() -> (Person, Person, Person) {
    (Person::named("alice"), Person::named("bob"), Person::named("carol"))
}

/// An active project that needs two of Alice, Bob and Carol, and one release of it.
fn two_of_three() -> (World, String) {
    let (alice, bob, carol) = people();
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob, &carol]), &[&alice, &bob, &carol]);
    let index = world.add_release(&alice, "acme/app/v1");
    (world, index)
}

#[test]
fn a_file_collects_until_its_threshold_is_reached() {
    let (alice, bob, carol) = people();
    let (world, index) = two_of_three();
    assert!(!world.is_complete(&carol, &index));
    assert_eq!(world.sign(&alice, &index).ok(), json!({ "is_complete": false }));
    assert!(!world.is_complete(&carol, &index));
    let collected = world.read_json(&format!("{index}.signatures.json.pending"));
    assert_eq!(collected["entries"][alice.key()]["signature"], json!(alice.sign_bytes(&world.read(&index))));
    assert!(collected["entries"][alice.key()]["collected_at"].as_str().unwrap().ends_with('Z'));

    assert_eq!(world.sign(&bob, &index).ok(), json!({ "is_complete": true }));
    assert!(world.is_complete(&carol, &index));
    let complete = world.read_json(&format!("{index}.signatures.json"));
    assert_eq!(complete["entries"].as_object().unwrap().len(), 2);
    world.file(&format!("{index}.signatures.json.pending")).error(404);
}

#[test]
fn every_group_of_artifact_signers_must_reach_its_threshold() {
    let (alice, bob, carol) = people();
    let file = SignersFile::of(1, &[&alice, &bob]).artifact(1, &[&carol]);
    let world = World::with_project(&file, &[&alice, &bob, &carol]);
    let index = world.add_release(&alice, "acme/app/v1");
    world.sign_all(&index, &[&alice, &bob, &carol]);
}

#[test]
fn a_key_of_two_groups_counts_in_both() {
    let (alice, bob, _) = people();
    let file = SignersFile::of(1, &[&alice, &bob]).artifact(1, &[&alice]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let index = world.add_release(&alice, "acme/app/v1");
    world.sign_all(&index, &[&alice]);
}

#[test]
fn the_same_key_signs_once_under_any_spelling() {
    let (alice, ..) = people();
    let (world, index) = two_of_three();
    world.sign(&alice, &index).ok();
    let mut body = world.signature_body(&alice, &index);
    for spelling in [alice.body_key(), alice.key(), alice.ssh_key(), alice.body_key().replace('=', "")] {
        body["public_key"] = json!(spelling);
        world.submit(&alice, &body).error(409);
    }
    assert!(!world.is_complete(&alice, &index));
}

#[test]
fn a_complete_file_takes_no_more_signatures() {
    let (alice, bob, carol) = people();
    let (world, index) = two_of_three();
    world.sign_all(&index, &[&alice, &bob]);
    world.sign(&carol, &index).error(409);
    world.sign(&alice, &index).error(409);
}

#[test]
fn a_revoked_file_takes_no_signatures() {
    let (alice, bob, carol) = people();
    let (world, index) = two_of_three();
    world.sign_all(&index, &[&alice, &bob]);
    world.revoke(&alice, &index).ok();
    world.sign(&carol, &index).error(409);
}

#[test]
fn a_relay_may_submit_for_an_offline_signer() {
    let (alice, ..) = people();
    let (world, index) = two_of_three();
    let body = world.signature_body(&alice, &index);
    assert_eq!(world.submit(&Person::named("relay"), &body).ok(), json!({ "is_complete": false }));
    world.sign(&alice, &index).error(409);
}

#[test]
fn a_signers_file_needs_the_signature_on_its_metadata_too() {
    let (alice, ..) = people();
    let world = World::start();
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    let pending = world.pending_path("acme/app");
    let metadata = format!("{pending}.metadata.json");
    let mut body = world.signature_body(&alice, &pending);
    let right = body["signatures"].as_object_mut().unwrap().remove(&metadata).unwrap();
    world.submit(&alice, &body).error(400);
    body["signatures"][&metadata] = json!(alice.sign_bytes(b"something else"));
    world.submit(&alice, &body).error(400);
    assert!(!world.is_complete(&alice, &pending), "all or nothing");
    assert!(!world.exists(&world.active_path("acme/app")));
    body["signatures"][&metadata] = right;
    assert_eq!(world.submit(&alice, &body).ok(), json!({ "is_complete": true }));
}

#[test]
fn a_signature_for_another_path_is_refused_with_all_of_them() {
    let (alice, ..) = people();
    let (world, index) = two_of_three();
    let mut body = world.signature_body(&alice, &index);
    body["signatures"][&world.active_path("acme/app")] = json!(alice.sign_bytes(b"x"));
    world.submit(&alice, &body).error(400);
    world.sign(&alice, &index).ok();
}

#[test]
fn the_primary_file_needs_a_signature() {
    let (alice, ..) = people();
    let (world, index) = two_of_three();
    for signatures in [json!({}), json!({ format!("{index}.metadata.json"): alice.sign_bytes(b"x") })] {
        let body = json!({ "file_path": index, "public_key": alice.body_key(), "signatures": signatures });
        world.submit(&alice, &body).error(400);
    }
}

#[test]
fn a_signature_over_other_bytes_is_refused() {
    let (alice, bob, _) = people();
    let (world, index) = two_of_three();
    let mut body = world.signature_body(&alice, &index);
    body["signatures"][&index] = json!(alice.sign_bytes(b"something else"));
    world.submit(&alice, &body).error(400);
    body["signatures"][&index] = json!(bob.sign_bytes(&world.read(&index)));
    world.submit(&alice, &body).error(400);
    world.sign(&alice, &index).ok();
}

#[test]
fn form_is_checked_field_by_field() {
    let (alice, ..) = people();
    let (world, index) = two_of_three();
    let good = world.signature_body(&alice, &index);
    let changed = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body
    };
    for body in [
        json!({}),
        json!([]),
        json!("x"),
        changed("file_path", json!("")),
        changed("file_path", json!("../x")),
        changed("file_path", json!("a//b")),
        changed("file_path", json!(7)),
        changed("public_key", json!("x")),
        changed("public_key", Value::Null),
        changed("public_key", json!("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")),
        changed("signatures", json!([])),
        changed("signatures", json!({ &index: "x" })),
        changed("signatures", json!({ &index: "AAAA" })),
        changed("signatures", json!({ &index: 7 })),
        changed("signatures", json!({ &index: Value::Null })),
        changed("signatures", json!({ "": alice.sign_bytes(b"x") })),
    ] {
        let reply = world.submit(&alice, &body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
        reply.error(400);
    }
    world.submit(&alice, &good).ok();
}

#[test]
fn a_file_that_is_not_there_is_named_by_its_normalised_path() {
    let (alice, ..) = people();
    let world = World::start();
    for (path, normalised) in [
        ("http/127.0.0.1/1/none", "http/127.0.0.1/1/none"),
        ("https/EXAMPLE.org/acme/app", "https/example.org/443/acme/app"),
        ("http/Example.ORG/acme", "http/example.org/80/acme"),
        ("https/example.org/70000/x", "https/example.org/443/70000/x"),
        ("Some/Other/Shape", "Some/Other/Shape"),
    ] {
        let body = json!({
            "file_path": path,
            "public_key": alice.body_key(),
            "signatures": { path: alice.sign_bytes(b"x") },
        });
        let message = world.submit(&alice, &body).error(400);
        assert_eq!(message, format!("File not found: {normalised}"));
    }
}

#[test]
fn only_an_index_and_a_pending_signers_file_collect_signatures() {
    let (alice, ..) = people();
    let (world, index) = two_of_three();
    let active = world.active_path("acme/app");
    for path in [
        active.clone(),
        format!("{active}.metadata.json"),
        format!("{active}.registration.json"),
        format!("{}/svc.signers.history.json", world.id("acme/app")),
        format!("{index}.signers.json"),
        format!("{index}.signatures.json.pending"),
    ] {
        assert!(world.exists(&path), "{path}");
        world.sign(&alice, &path).error(400);
        world.status(&alice, &path).error(404);
    }
}

#[test]
fn who_may_not_sign_is_told_so() {
    let (alice, bob, _) = people();
    let file = SignersFile::of(1, &[&alice]).admin(1, &[&bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let index = world.add_release(&bob, "acme/app/v1");
    world.sign(&bob, &index).error(403);
    world.sign(&Person::named("mallory"), &index).error(403);
    assert!(!world.is_complete(&alice, &index));
}

#[test]
fn checks_come_in_the_order_form_existence_state_right_repetition_signature() {
    let (alice, bob, _) = people();
    let mallory = Person::named("mallory");
    let (world, index) = two_of_three();
    let body = |person: &Person, path: &str, signature: &str| json!({ "file_path": path, "public_key": person.body_key(), "signatures": { path: signature } });
    let wrong = mallory.sign_bytes(b"wrong");
    let absent = world.index_path("acme/app/none");
    let form = world.submit(&alice, &body(&mallory, &absent, "x")).error(400);
    assert!(!form.contains("File not found"), "form before existence: {form}");
    world.submit(&alice, &body(&mallory, &absent, &wrong)).refused(400, "File not found: ");
    world.submit(&alice, &body(&mallory, &index, &wrong)).error(403);
    world.sign(&alice, &index).ok();
    world.submit(&alice, &body(&alice, &index, &wrong)).error(409);
    world.submit(&alice, &body(&bob, &index, &wrong)).error(400);
    world.sign(&bob, &index).ok();
    world.submit(&alice, &body(&mallory, &index, &wrong)).error(409);
}

#[test]
fn a_signature_for_the_index_before_its_correction_is_refused() {
    let (alice, ..) = people();
    let (world, index) = two_of_three();
    let early = world.signature_body(&alice, &index);
    let url = world.publish_checksums("acme/app/v1", &checksums("corrected"));
    world.register_assets(&alice, &[&url]).ok();
    world.submit(&alice, &early).error(400);
}

#[test]
fn paths_in_the_body_are_normalised() {
    let (alice, ..) = people();
    let (world, index) = two_of_three();
    let mut body = world.signature_body(&alice, &index);
    let slashed = format!("{index}/");
    body["signatures"] = json!({ &slashed: body["signatures"][&index] });
    body["file_path"] = json!(slashed);
    world.submit(&alice, &body).ok();
}
