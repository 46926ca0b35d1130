//! POST /v1/withdraw: who, when, and what it leaves.

use std::thread;

use serde_json::{Value, json};

use crate::support::second_thoughts::{collecting, digest_of, object, project, withdraw};
use crate::support::{Request, client::Computer, html::open, person, world::checksums};

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
