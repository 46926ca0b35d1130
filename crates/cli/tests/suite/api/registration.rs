//! POST /v1/register_repo: spec §3 and §4.1, D8, D10, D13–D15.

use serde_json::json;

use crate::support::{Person, SignersFile, World, alice, bob, seconds_from_now};

#[test]
fn a_file_of_256_kib_is_read_and_a_larger_one_refused() {
    const LIMIT: usize = 256 * 1024;
    let world = World::start();
    let register = |length: usize| {
        world.register(&alice(), "acme/app", &SignersFile::of(1, &[&alice()]).padded_to(length))
    };
    register(LIMIT + 1).error(500);
    register(LIMIT).ok();
    assert_eq!(world.read(&world.pending_path("acme/app")).len(), LIMIT);
}

#[test]
fn a_registration_that_is_not_complete_after_14_days_may_be_made_anew() {
    const DAY: i64 = 24 * 3600;
    let (alice, bob) = (alice(), bob());
    let mut world = World::start();
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice, &bob])).ok();
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    let bobs = SignersFile::of(1, &[&bob as &Person]);
    for (age, status) in [(13 * DAY, 409), (15 * DAY, 200)] {
        let path = format!("{}.metadata.json", world.pending_path("acme/app"));
        let mut metadata = world.read_json(&path);
        metadata["origin"]["retrieved_at"] = json!(seconds_from_now(-age).to_string());
        world.server.stop();
        world.git().commit_file(&path, format!("{metadata:#}\n").as_bytes());
        world.server.start_again();
        let reply = world.register(&bob, "acme/app", &bobs);
        assert_eq!(reply.status, status, "{age} seconds old: {}", reply.text());
    }
    world.sign_all(&world.pending_path("acme/app"), &[&bob]);
    assert_eq!(world.read(&world.active_path("acme/app")), bobs.bytes());
}
