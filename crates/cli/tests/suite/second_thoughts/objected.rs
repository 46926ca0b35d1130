//! POST /v1/object: who, when, and what cannot be replayed.

use countersign_core::values::time::Timestamp;
use serde_json::json;

use crate::support::second_thoughts::{
    collecting, object, objection, objection_at, objection_body, person, project, withdraw,
};
use crate::support::{
    Reply, Request, SignersFile, World, days_ago, people::now, signers::seconds_from_now, world::checksums,
};

fn standing(world: &World, name: &str) -> Vec<(String, String)> {
    let answer = world.get_as(&person(name), "/v1/pending_signatures").ok();
    let text = |entry: &serde_json::Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let entries = answer["objections"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| (text(entry, "public_key"), text(entry, "objection"))).collect()
}

#[test]
fn a_signer_of_any_role_objects_and_nothing_is_blocked() {
    let (world, index) = collecting();
    for name in ["alice", "carol", "dave", "erin"] {
        assert_eq!(object(&world, &person(name), &index, Some("not my build")).ok()["success"], true);
    }
    assert_eq!(standing(&world, "bob").len(), 4);
    let stored = world.read_json(&format!("{index}.objections.json"));
    assert_eq!(stored["objections"].as_object().unwrap().len(), 4);
    for name in ["machine", "mallory"] {
        object(&world, &person(name), &index, Some("no")).refused(403, "not in the current signers file");
    }
    world.sign_all(&index, &[&person("alice"), &person("bob")]);
    assert!(world.is_complete(&person("alice"), &index));
    object(&world, &person("bob"), &index, Some("I should not have signed")).ok();
    let listed = world.server.get(&format!("/v1/releases?project={}", world.id("acme/app"))).ok();
    assert_eq!(listed["releases"][0]["objections"], 5);
}

#[test]
fn anyone_hands_in_what_a_signer_signed() {
    let (world, index) = collecting();
    let bob = person("bob");
    let body = objection_body(&bob, &index, &objection(&world, &index, Some("not my build")));
    world.post_as(&person("mallory"), "/v1/object", &body).ok();
    assert_eq!(standing(&world, "alice"), [(bob.key(), "not my build".to_owned())]);
}

#[test]
fn an_old_objection_cannot_be_replayed_after_it_was_taken_back() {
    let (mut world, index) = collecting();
    let bob = person("bob");
    let old = objection_body(&bob, &index, &objection(&world, &index, Some("not my build")));
    world.post_as(&bob, "/v1/object", &old).ok();
    object(&world, &bob, &index, None).ok();
    assert!(standing(&world, "alice").is_empty());
    for restarted in [false, true] {
        if restarted {
            world.server.restart();
        }
        for submitter in ["mallory", "bob"] {
            let replayed = world.post_as(&person(submitter), "/v1/object", &old);
            replayed.refused(409, "must be later");
        }
    }
    object(&world, &bob, &index, None).refused(409, "could take back");
    assert!(standing(&world, "alice").is_empty());
    object(&world, &bob, &index, Some("still not")).ok();
    assert_eq!(standing(&world, "alice"), [(bob.key(), "still not".to_owned())]);
}

#[test]
fn a_time_is_later_than_the_one_before_and_not_far_ahead() {
    let (world, index) = collecting();
    let bob = person("bob");
    let at = |world: &World, time: Timestamp| -> Reply {
        let body = objection_body(&bob, &index, &objection_at(world, &index, Some("no"), time));
        world.post_as(&bob, "/v1/object", &body)
    };
    at(&world, seconds_from_now(11 * 60)).refused(400, "10 minutes ahead");
    let time = seconds_from_now(9 * 60);
    at(&world, time).ok();
    at(&world, time).refused(409, "must be later");
    at(&world, now()).refused(409, "must be later");
}

#[test]
fn corrections_and_withdrawals_delete_objections_and_rotations_keep_them() {
    let (world, index) = collecting();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let file = format!("{index}.objections.json");
    let old = objection_body(&bob, &index, &objection(&world, &index, Some("no")));
    world.post_as(&bob, "/v1/object", &old).ok();
    let url = world.publish_checksums("acme/app/v1", &checksums("corrected"));
    world.register_assets(&alice, &[&url]).ok();
    world.file(&file).error(404);
    world.post_as(&bob, "/v1/object", &old).refused(409, "Digest mismatch");
    object(&world, &bob, &index, Some("no")).ok();
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice]).admin(1, &[&carol]);
    world.rotate("acme/app", &next, &[&carol]);
    assert_eq!(standing(&world, "alice").len(), 1);
    object(&world, &bob, &index, Some("more")).error(403);
    object(&world, &bob, &index, None).ok();
    object(&world, &carol, &index, Some("no")).ok();
    withdraw(&world, &carol, &index).ok();
    world.file(&file).error(404);
    world.post_as(&bob, "/v1/object", &old).error(404);
}

#[test]
fn a_revoked_release_and_what_is_no_release_are_refused() {
    let (world, index) = collecting();
    let [alice, bob, erin] = ["alice", "bob", "erin"].map(person);
    object(&world, &bob, &index, Some("no")).ok();
    world.sign_all(&index, &[&alice, &bob]);
    world.revoke(&erin, &index).ok();
    object(&world, &alice, &index, Some("no")).refused(409, "revoked");
    assert!(world.exists(&format!("{index}.objections.json")), "what was said stays");
    let active = world.active_path("acme/app");
    object(&world, &alice, &active, Some("no")).refused(400, "not a release");
    let document = objection(&world, &index, Some("no"));
    let never = world.index_path("acme/app/v9");
    world.post_as(&alice, "/v1/object", &objection_body(&alice, &never, &document)).error(404);
}

#[test]
fn what_is_malformed_is_refused() {
    let (world, index) = collecting();
    let bob = person("bob");
    let right = objection(&world, &index, Some("no"));
    let send = |document: &str| world.post_as(&bob, "/v1/object", &objection_body(&bob, &index, document));
    send(&right.replace("\"no\"", "\"\"")).refused(400, "1 to 1000 characters");
    let long = |count: usize| right.replace("\"no\"", &format!("\"{}\"", "é".repeat(count)));
    send(&long(1_001)).refused(400, "1 to 1000 characters");
    send(&right.replace("\"objection\"", "\"reason\"")).refused(400, "unknown field");
    send(&right.replace("\"timestamp\"", "\"time\"")).refused(400, "unknown field");
    send(&right.replacen('{', "{\"note\": 1, ", 1)).refused(400, "unknown field");
    let padded = |bytes: usize| format!("{right}{}", " ".repeat(bytes - right.len()));
    send(&padded(8 * 1024 + 1)).refused(400, "at most 8192 bytes");
    let mut wrong = objection_body(&bob, &index, &right);
    wrong["signature"] = json!(person("alice").sign_bytes(right.as_bytes()));
    world.post_as(&bob, "/v1/object", &wrong).refused(400, "does not verify");
    world.server.send(&Request::post("/v1/object", &json!({}))).error(401);
    assert!(standing(&world, "alice").is_empty(), "none of it was stored");
    send(&padded(8 * 1024)).ok();
    send(&objection(&world, &index, Some(&"é".repeat(1_000)))).ok();
}

/// A revocation, a signature on a release, and an objection never stand for each other (D34).
#[test]
fn an_objection_is_of_no_use_as_anything_else() {
    let world = project();
    let [alice, bob, erin] = ["alice", "bob", "erin"].map(person);
    let index = world.add_signed_release("acme/app/v1", &[&alice, &bob]);
    let document = objection(&world, &index, Some("no"));
    world.revoke_with(&erin, &index, &document).refused(400, "revocation document");
    let revocation = world.revocation_of(&index, "bad");
    let body = objection_body(&erin, &index, &revocation);
    world.post_as(&erin, "/v1/object", &body).refused(400, "Invalid objection");
    let next = world.add_release(&alice, "acme/app/v2");
    let mut signature = world.signature_body(&bob, &next);
    signature["signatures"][&next] = json!(bob.sign_bytes(objection(&world, &next, Some("no")).as_bytes()));
    world.submit(&bob, &signature).refused(400, "does not verify");
}
