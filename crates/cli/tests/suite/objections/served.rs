//! `POST /v1/withdraw` and `POST /v1/object`: what cannot be replayed, who wins a race, and what events, mirrors and
//! `fsck` repeat of it.

use std::thread;

use serde_json::{Value, json};

use crate::support::mirrors::{await_same, start_mirror, url_of};
use crate::support::objections::{collecting, object, objection, objection_body, project, withdraw};
use crate::support::{EventStream, Request, World, fsck::fsck, person};

fn standing(world: &World) -> Vec<(String, String)> {
    let answer = world.get_as(&person("alice"), "/v1/pending_signatures").ok();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let entries = answer["objections"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| (text(entry, "public_key"), text(entry, "objection"))).collect()
}

/// Anyone hands in what a signer signed, and no one after it was taken back.
#[test]
fn an_old_objection_cannot_be_replayed_after_it_was_taken_back() {
    let (mut world, index) = collecting();
    let bob = person("bob");
    let old = objection_body(&bob, &index, &objection(&world, &index, Some("not my build")));
    world.post_as(&person("mallory"), "/v1/object", &old).ok();
    assert_eq!(standing(&world), [(bob.key(), "not my build".to_owned())]);
    object(&world, &bob, &index, None).ok();
    assert!(standing(&world).is_empty());
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
    assert!(standing(&world).is_empty());
    object(&world, &bob, &index, Some("still not")).ok();
    assert_eq!(standing(&world), [(bob.key(), "still not".to_owned())]);
}

#[test]
fn a_withdrawal_and_the_last_signature_never_both_win() {
    let world = project();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
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
        match if round % 2 == 0 { (first, second) } else { (second, first) } {
            (200, 409) => {
                assert!(world.is_complete(&alice, &index));
                assert!(!world.exists(&format!("{index}.withdrawn.json")));
            }
            (400, 200) => {
                assert!(!world.exists(&index) && world.exists(&format!("{index}.withdrawn.json")));
            }
            both => panic!("{both:?}"),
        }
    }
    world.git().assert_sound();
}

#[test]
fn events_a_mirror_and_fsck_repeat_all_of_it() {
    let mut world = project();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let index = world.add_release(&alice, "acme/app/v1");
    let mut mirror = start_mirror(&url_of(&world.server));
    let mut events = EventStream::at(world.server.address(), "/v1/events");
    let mut only = EventStream::at(world.server.address(), "/v1/events?type=withdrawn");
    object(&world, &bob, &index, Some("not my build")).ok();
    object(&world, &bob, &index, None).ok();
    object(&world, &carol, &index, Some("nor mine")).ok();
    withdraw(&world, &alice, &index).ok();
    for (kind, by) in
        [("objection", &bob), ("objection-withdrawn", &bob), ("objection", &carol), ("withdrawn", &alice)]
    {
        let event = events.next_event();
        assert_eq!(event.kind.as_deref(), Some(kind));
        let data = event.data.expect("an event");
        assert_eq!((data["path"].as_str(), data["key"].as_str()), (Some(&*index), Some(&*by.key())));
    }
    assert_eq!(only.next_event().kind.as_deref(), Some("withdrawn"));
    await_same(&mirror, &world.server);
    assert_eq!(mirror.get(&format!("/v1/files/{index}.withdrawn.json")).status, 200);
    assert_eq!(mirror.get(&format!("/p/{index}")).status, 200);
    let body = json!({ "file_path": index, "reason": "x" });
    mirror.send(&alice.sign(Request::post("/v1/withdraw", &body))).error(403);
    let kept = world.add_release(&bob, "acme/app/v1");
    object(&world, &alice, &kept, Some("again")).ok();
    world.sign_all(&kept, &[&alice, &bob]);
    await_same(&mirror, &world.server);
    fsck(&mirror.data_dir(), &[]).is_clean();
    // The used nonce of a withdrawal stays used for mirrors that start later.
    mirror.restart();
    let late = start_mirror(&url_of(&world.server));
    let again = world.add_release(&bob, "acme/app/v2");
    withdraw(&world, &bob, &again).ok();
    await_same(&mirror, &world.server);
    await_same(&late, &world.server);
    world.server.crash_and_restart();
    fsck(&world.server.data_dir(), &[]).is_clean();
    world.git().assert_sound();
}
