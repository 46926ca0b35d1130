//! D5, D8, D25: what a fetched signers file must look like. What does not is 500 and leaves nothing behind.

use crate::support::{Answer, SignersFile, World, alice};

fn good() -> SignersFile {
    SignersFile::of(1, &[&alice()])
}

/// Registers these bytes and expects a refusal that contains `words`.
#[track_caller]
fn assert_invalid(world: &World, bytes: impl Into<Vec<u8>>, words: &str) {
    world.files.put("/acme/app/svc.signers.json", bytes);
    let url = world.files.url("/acme/app/svc.signers.json");
    world.register_url(&alice(), &url).refused(500, words);
}

#[track_caller]
fn assert_nothing_stored(world: &World) {
    assert_eq!(world.git().commit_count(), 1, "the format marker is the only commit");
    world.register(&alice(), "acme/app", &good()).ok();
}

#[test]
fn a_file_of_256_kib_is_read_and_a_larger_one_refused() {
    const LIMIT: usize = 256 * 1024;
    let world = World::start();
    let mut bytes = good().bytes();
    bytes.resize(LIMIT + 1, b' ');
    assert_invalid(&world, bytes.clone(), "");
    world.files.set("/acme/app/svc.signers.json", Answer::Endless);
    world.register_url(&alice(), &world.files.url("/acme/app/svc.signers.json")).error(500);
    bytes.truncate(LIMIT);
    world.files.put("/acme/app/svc.signers.json", bytes.clone());
    world.register_url(&alice(), &world.files.url("/acme/app/svc.signers.json")).ok();
    assert_eq!(world.read(&world.pending_path("acme/app")), bytes);
}

#[test]
fn an_upstream_that_fails_is_named_with_its_reason_and_nothing_is_stored() {
    let world = World::start();
    let path = "/acme/app/svc.signers.json";
    let url = world.files.url(path);
    for answer in [
        Answer::Status(404),
        Answer::Status(403),
        Answer::Status(500),
        Answer::Status(204),
        Answer::HungUp,
        Answer::BrokenOff(good().bytes()),
    ] {
        world.files.set(path, answer);
        world.register_url(&alice(), &url).refused(500, &url);
    }
    assert_nothing_stored(&world);
}
