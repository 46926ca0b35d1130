//! POST /v1/withdraw: who, when, and what it leaves.

use std::thread;

use countersign_core::documents::withdrawal::Withdrawal;
use serde_json::{Value, json};

use crate::support::second_thoughts::{collecting, digest_of, object, person, project, withdraw};
use crate::support::{Request, SignersFile, World, days_ago, world::checksums};

fn names_beside(world: &World, index: &str) -> Vec<String> {
    let dir = index.rsplit_once('/').unwrap().0;
    let listed = world.git().run(&["ls-tree", "-r", "--name-only", "main", &format!("{dir}/")]);
    listed.lines().map(|line| line.rsplit('/').next().unwrap().to_owned()).collect()
}

#[test]
fn the_registrant_withdraws_in_one_commit_and_leaves_a_record() {
    let (world, index) = collecting();
    let (alice, bob) = (person("alice"), person("bob"));
    world.sign(&bob, &index).ok();
    object(&world, &bob, &index, Some("not my build")).ok();
    let before = world.git().commit_count();
    let body =
        json!({ "file_path": index, "reason": "the wrong tag", "subject_digest": digest_of(&world, &index) });
    let answer = world.post_as(&alice, "/v1/withdraw", &body).ok();
    assert_eq!(answer["success"], true);
    assert_eq!(world.git().commit_count(), before + 1);
    assert_eq!(names_beside(&world, &index), ["svc.index.json.withdrawn.json"]);
    world.file(&index).error(404);
    let record = Withdrawal::parse(&world.read(&format!("{index}.withdrawn.json"))).unwrap();
    assert!(record.request.verify().is_ok());
    assert_eq!(record.request.public_key.to_string(), alice.key());
    assert_eq!(record.body.reason, "the wrong tag");
    assert_eq!(serde_json::from_str::<Value>(&record.request.payload).unwrap(), body);
    assert!(world.pending(&alice).is_empty(), "it waits for no one");
    world.status(&alice, &index).error(404);
}

#[test]
fn who_may_and_who_may_not() {
    let (world, index) = collecting();
    for name in ["bob", "dave", "erin", "machine", "mallory"] {
        withdraw(&world, &person(name), &index).refused(403, "may not withdraw");
    }
    withdraw(&world, &person("carol"), &index).ok();
    // A registrar withdraws what it registered, and nothing else.
    let index = world.add_release(&person("machine"), "acme/app/v2");
    withdraw(&world, &person("alice"), &index).error(403);
    withdraw(&world, &person("machine"), &index).ok();
}

#[test]
fn a_registrant_that_a_rotation_removed_is_refused() {
    let world = project();
    let [bob, carol] = ["bob", "carol"].map(person);
    let index = world.add_release(&bob, "acme/app/v1");
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&person("alice")]).admin(1, &[&carol]);
    world.rotate("acme/app", &next, &[&carol]);
    withdraw(&world, &bob, &index).error(403);
    withdraw(&world, &carol, &index).ok();
}

#[test]
fn when_it_is_complete_revoked_withdrawn_or_never_there() {
    let (world, index) = collecting();
    let [alice, bob, carol, erin] = ["alice", "bob", "carol", "erin"].map(person);
    let never = world.index_path("acme/app/v9");
    withdraw(&world, &alice, &never).refused(404, "File not found");
    withdraw(&world, &alice, &world.active_path("acme/app")).refused(400, "only releases can");
    withdraw(&world, &alice, "a/../b").refused(400, "path traversal");
    world.post_as(&alice, "/v1/withdraw", &json!({ "file_path": index })).refused(400, "reason");
    let empty = json!({ "file_path": index, "reason": "" });
    world.post_as(&alice, "/v1/withdraw", &empty).refused(400, "1 to 1000 characters");
    world.server.send(&Request::post("/v1/withdraw", &json!({}))).error(401);
    world.sign_all(&index, &[&alice, &bob]);
    assert!(!world.exists(&format!("{index}.registrant.json")), "complete releases have none");
    withdraw(&world, &alice, &index).refused(409, "revoke it");
    world.revoke(&erin, &index).ok();
    withdraw(&world, &carol, &index).refused(409, "revoked already");
    let other = world.add_release(&alice, "acme/app/v2");
    withdraw(&world, &alice, &other).ok();
    withdraw(&world, &alice, &other).refused(409, "withdrawn already");
    world.sign(&alice, &index).error(409);
}

#[test]
fn a_correction_is_not_withdrawn_unseen() {
    let (world, index) = collecting();
    let [alice, bob] = ["alice", "bob"].map(person);
    let seen = digest_of(&world, &index);
    let url = world.publish_checksums("acme/app/v1", &checksums("corrected"));
    world.register_assets(&bob, &[&url]).ok();
    let body = json!({ "file_path": index, "reason": "x", "subject_digest": seen });
    world.post_as(&person("carol"), "/v1/withdraw", &body).refused(409, "Digest mismatch");
    // Bob registered it last.
    withdraw(&world, &alice, &index).error(403);
    withdraw(&world, &bob, &index).ok();
}

#[test]
fn a_free_path_is_registered_again_and_old_signatures_do_not_fit() {
    let (mut world, index) = collecting();
    let [alice, bob] = ["alice", "bob"].map(person);
    let old = world.signature_body(&bob, &index);
    let before = world.read(&index);
    withdraw(&world, &alice, &index).ok();
    world.server.restart();
    assert!(world.exists(&format!("{index}.withdrawn.json")));
    // The same second gives the same index, and then the old signature is one on it.
    loop {
        world.add_release(&bob, "acme/app/v1");
        if world.read(&index) != before {
            break;
        }
        withdraw(&world, &bob, &index).ok();
    }
    assert!(!world.exists(&format!("{index}.withdrawn.json")));
    world.submit(&bob, &old).refused(400, "does not verify");
    world.sign_all(&index, &[&alice, &bob]);
    assert!(world.is_complete(&alice, &index));
    world.git().assert_sound();
}

#[test]
fn two_releases_of_one_directory_name_do_not_touch_each_other() {
    let (world, index) = collecting();
    let alice = person("alice");
    let deep = world.add_release(&alice, "acme/app/v1/v1");
    withdraw(&world, &alice, &index).ok();
    assert!(world.exists(&deep));
    withdraw(&world, &alice, &deep).ok();
    assert!(world.exists(&format!("{index}.withdrawn.json")));
    world.add_release(&alice, "acme/app/v1/v1");
    assert!(world.exists(&format!("{index}.withdrawn.json")), "of the other one");
}

#[test]
fn a_withdrawal_and_the_last_signature_never_both_win() {
    let world = project();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let (mut signed, mut withdrawn) = (0, 0);
    for round in 0..12 {
        let index = world.add_release(&alice, &format!("acme/app/{round}"));
        world.sign(&alice, &index).ok();
        let sign = bob.sign(Request::post("/v1/signatures", &world.signature_body(&bob, &index)));
        let body = json!({ "file_path": index, "reason": "a race" });
        let withdraw = carol.sign(Request::post("/v1/withdraw", &body));
        let (first, second) = if round % 2 == 0 { (&sign, &withdraw) } else { (&withdraw, &sign) };
        let [first, second] = thread::scope(|scope| {
            let threads = [first, second].map(|request| scope.spawn(|| world.server.send(request).status));
            threads.map(|thread| thread.join().unwrap())
        });
        let (sign, withdraw) = if round % 2 == 0 { (first, second) } else { (second, first) };
        match (sign, withdraw) {
            (200, 409) => {
                signed += 1;
                assert!(world.is_complete(&alice, &index));
                assert!(!world.exists(&format!("{index}.withdrawn.json")));
            }
            (400, 200) => {
                withdrawn += 1;
                assert!(!world.exists(&index) && world.exists(&format!("{index}.withdrawn.json")));
            }
            both => panic!("{both:?}"),
        }
    }
    assert_eq!(signed + withdrawn, 12);
    world.git().assert_sound();
}

#[test]
fn lists_know_nothing_of_a_withdrawn_release() {
    let (world, index) = collecting();
    let project = world.id("acme/app");
    let listed = |world: &World| {
        let answer = world.server.get(&format!("/v1/releases?project={project}")).ok();
        answer["releases"].as_array().unwrap().len()
    };
    assert_eq!(listed(&world), 1);
    withdraw(&world, &person("alice"), &index).ok();
    assert_eq!(listed(&world), 0);
    let key = person("bob").key().replace('/', "%2F").replace('+', "%2B");
    let pending = world.server.get(&format!("/v1/keys/{key}/pending")).ok();
    assert_eq!(pending["pending"], json!([]));
    world.add_release(&person("alice"), "acme/app/v1");
    assert_eq!(listed(&world), 1);
}
