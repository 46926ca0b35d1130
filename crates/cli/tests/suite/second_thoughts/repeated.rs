//! What others repeat of it: events, the journal, `fsck`, mirrors, restarts.

use crate::support::mirrors::{await_same, start_mirror, url_of};
use crate::support::second_thoughts::{collecting, object, project, withdraw};
use crate::support::{EventStream, fsck::fsck, person};

#[test]
fn events_tell_who_and_what() {
    let (world, index) = collecting();
    let mut events = EventStream::at(world.server.address(), "/v1/events");
    object(&world, &person("bob"), &index, Some("no")).ok();
    object(&world, &person("bob"), &index, None).ok();
    withdraw(&world, &person("alice"), &index).ok();
    for (kind, by) in [("objection", "bob"), ("objection-withdrawn", "bob"), ("withdrawn", "alice")] {
        let event = events.next_event();
        assert_eq!(event.kind.as_deref(), Some(kind));
        let data = event.data.expect("an event");
        assert_eq!((data["path"].as_str(), data["key"].as_str()), (Some(&*index), Some(&*person(by).key())));
    }
    let mut only = EventStream::at(world.server.address(), "/v1/events?type=withdrawn");
    let other = world.add_release(&person("alice"), "acme/app/v2");
    withdraw(&world, &person("carol"), &other).ok();
    assert_eq!(only.next_event().kind.as_deref(), Some("withdrawn"));
}

#[test]
fn a_mirror_and_fsck_repeat_all_of_it() {
    let mut world = project();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let index = world.add_release(&alice, "acme/app/v1");
    let mirror = start_mirror(&url_of(&world.server));
    object(&world, &bob, &index, Some("not my build")).ok();
    object(&world, &carol, &index, Some("nor mine")).ok();
    object(&world, &carol, &index, None).ok();
    withdraw(&world, &alice, &index).ok();
    await_same(&mirror, &world.server);
    assert_eq!(mirror.get(&format!("/v1/files/{index}.withdrawn.json")).status, 200);
    assert_eq!(mirror.get(&format!("/p/{index}")).status, 200);
    let body = serde_json::json!({ "file_path": index, "reason": "x" });
    let refused = mirror.send(&alice.sign(crate::support::Request::post("/v1/withdraw", &body)));
    refused.error(403);
    let kept = world.add_release(&bob, "acme/app/v1");
    object(&world, &alice, &kept, Some("again")).ok();
    world.sign_all(&kept, &[&alice, &bob]);
    await_same(&mirror, &world.server);
    fsck(&mirror.data_dir(), &[]).is_clean();
    world.server.crash_and_restart();
    fsck(&world.server.data_dir(), &[]).is_clean();
    world.git().assert_sound();
}

/// The used nonce of a withdrawal stays used for a mirror that starts later.
#[test]
fn a_mirror_that_starts_later_goes_on() {
    let (world, index) = collecting();
    withdraw(&world, &person("alice"), &index).ok();
    let mut mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    mirror.restart();
    let again = world.add_release(&person("bob"), "acme/app/v1");
    withdraw(&world, &person("bob"), &again).ok();
    await_same(&mirror, &world.server);
}
