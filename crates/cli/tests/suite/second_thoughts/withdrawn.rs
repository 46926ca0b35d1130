//! POST /v1/withdraw: who, when, and what it leaves.

use std::thread;

use countersign_core::documents::withdrawal::Withdrawal;
use serde_json::{Value, json};

use crate::support::second_thoughts::{collecting, digest_of, object, person, project, withdraw};
use crate::support::{
    Request, SignersFile, World, client::Computer, days_ago, fsck::fsck, html::open, world::checksums,
};

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
    let left = ["svc.index.json.earlier-objections.json", "svc.index.json.withdrawn.json"];
    assert_eq!(names_beside(&world, &index), left);
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

/// The attack that D223 ends: a leaked CI key swaps the content under people who have looked at it.
#[test]
fn a_registrar_does_not_put_other_content_under_a_signature_or_an_objection() {
    let world = project();
    let [alice, bob, carol, machine] = ["alice", "bob", "carol", "machine"].map(person);
    for (dir, signs, objects) in
        [("v1", true, true), ("v2", true, false), ("v3", false, true), ("v4", false, false)]
    {
        let index = world.add_release(&machine, &format!("acme/app/{dir}"));
        if signs {
            world.sign(&alice, &index).ok();
        }
        if objects {
            object(&world, &bob, &index, Some("not my build")).ok();
        }
        if !signs && !objects {
            withdraw(&world, &machine, &index).ok();
            continue;
        }
        let before = world.read(&index);
        withdraw(&world, &machine, &index).refused(403, "is a registrar of");
        let sums = format!("/acme/app/{dir}/SHA256SUMS");
        world.files.put(&sums, checksums("other content"));
        world.register_assets(&machine, &[&world.files.url(&sums)]).refused(403, "is a registrar of");
        assert_eq!(world.read(&index), before);
        withdraw(&world, &carol, &index).ok();
    }
    fsck(&world.server.data_dir(), &[]).is_clean();
}

/// A stranger reads what was said of a content that is gone, also after another one took its place.
#[test]
fn objections_are_read_after_a_correction_and_a_withdrawal() {
    let (world, index) = collecting();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let first = digest_of(&world, &index);
    object(&world, &bob, &index, Some("not my build")).ok();
    world.files.put("/acme/app/v1/SHA256SUMS", checksums("corrected"));
    world.register_assets(&alice, &[&world.files.url("/acme/app/v1/SHA256SUMS")]).ok();
    let second = digest_of(&world, &index);
    world.file(&format!("{index}.objections.json")).error(404);
    object(&world, &carol, &index, Some("nor this")).ok();
    let computer = Computer::of(&world.server);
    let status = computer.run(&["status", &index]).ok();
    status.says(&[
        "1 OBJECTION",
        "nor this",
        "1 objection to an earlier content of this release",
        "not my build",
    ]);
    let review = computer.run_as("bob", &["sign", &index]).failed(2);
    review.says(&["1 OBJECTION", "1 objection to an earlier content of this release", "not my build"]);
    withdraw(&world, &carol, &index).ok();
    let expected = json!([
        { "public_key": bob.key(), "objection": "not my build", "subject_digest": first },
        { "public_key": carol.key(), "objection": "nor this", "subject_digest": second },
    ]);
    let told = |value: &Value| {
        let mut told = value["earlier_objections"].clone();
        for entry in told.as_array_mut().unwrap() {
            entry.as_object_mut().unwrap().remove("timestamp").unwrap();
        }
        told
    };
    assert_eq!(told(&computer.json(&["status", &index])), expected);
    computer.run(&["status", &index]).ok().says(&["withdrawn", "2 objections to an earlier content"]);
    open(&world.server, &format!("/p/{index}")).says(&["2 objections to an earlier content", "not my build"]);
    // Not the first content: within one second that would be the same index again.
    world.files.put("/acme/app/v1/SHA256SUMS", checksums("third"));
    world.register_assets(&person("machine"), &[&world.files.url("/acme/app/v1/SHA256SUMS")]).ok();
    let status = computer.json(&["status", &index]);
    assert_eq!((told(&status), &status["objections"]), (expected, &json!([])));
    let page = open(&world.server, &format!("/p/{index}"));
    page.says(&["2 objections to an earlier content", "nor this"])
        .lacks(&["signer objects", "signers object"]);
    let stored = world.read_json(&format!("{index}.earlier-objections.json"));
    assert_eq!(stored["earlier_objections"].as_array().unwrap().len(), 2);
    assert_eq!(stored["earlier_objections"][0]["public_key"], bob.key());
    let asked = computer.run_as("bob", &["sign", &index]).failed(2);
    asked.says(&["2 objections to an earlier content"]).says_nothing_of(&["OBJECTION"]);
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
