//! A mirror becomes a server of its own, and a directory becomes a mirror's (D76).

use crate::support::mirrors::{await_same, start_mirror, start_origin, tip_of, url_of};
use crate::support::{Git, Request, SignersFile, World, alice, server::Launch, server::TestServer};

fn origin() -> World {
    let world = start_origin();
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    world
}

#[test]
fn a_promoted_mirror_accepts_changes_and_nothing_that_was_signed_before() {
    let mut world = origin();
    let mut mirror = start_mirror(&url_of(&world.server));
    let used = alice().sign(Request::get("/v1/pending_signatures"));
    world.server.send(&used).ok();
    await_same(&mirror, &world.server);
    mirror.stop();
    world.server.stop();
    mirror.change_launch(|dir| Launch::serve(dir).arg("--dev"));
    mirror.start_again();
    mirror.await_log("from now on it is a server of its own", 1);
    mirror.send(&used).refused(401, "before this server was restored");
    world.server = mirror;
    world.add_signed_release("acme/app/1.0", &[&alice()]);
    assert_eq!(world.server.get("/readyz").status, 200);
    let page = world.server.send(&Request::get("/").with_header("accept", "text/html")).text();
    assert!(!page.contains("is a mirror"), "{page}");
    for name in ["mirror.origin", "mirror.refused"] {
        assert!(!world.server.data_dir().join(name).exists(), "{name}");
    }
    world.server.restart();
    assert!(!world.server.stop_and_read_log().contains("was a mirror"), "it is promoted once");
}

/// A server became a mirror, and is promoted again: what the origin accepted meanwhile must not count twice.
#[test]
fn nonces_from_before_a_directory_was_a_mirrors_are_not_trusted() {
    let world = origin();
    let mut copy = world.server.clone_mirror();
    assert!(copy.data_dir().join("nonces.sqlite").exists());
    copy.stop();
    let url = url_of(&world.server);
    copy.change_launch(|dir| Launch::mirror(&url, dir));
    copy.start_again();
    assert!(!copy.data_dir().join("nonces.sqlite").exists());
    let used = alice().sign(Request::get("/v1/pending_signatures"));
    world.server.send(&used).ok();
    copy.stop();
    copy.change_launch(|dir| Launch::serve(dir).arg("--dev"));
    copy.start_again();
    copy.send(&used).refused(401, "before this server was restored");
}

#[test]
fn a_promoted_mirror_that_went_its_own_way_is_not_taken_back() {
    let mut world = origin();
    let url = url_of(&world.server);
    let mut mirror = start_mirror(&url);
    await_same(&mirror, &world.server);
    mirror.stop();
    // Promoted by mistake, and nothing happened.
    mirror.change_launch(|dir| Launch::serve(dir).arg("--dev"));
    mirror.start_again();
    mirror.stop();
    mirror.change_launch(|dir| Launch::mirror(&url, dir));
    mirror.start_again();
    await_same(&mirror, &world.server);
    mirror.stop();
    // Promoted, and used.
    mirror.change_launch(|dir| Launch::serve(dir).arg("--dev"));
    mirror.start_again();
    let origin = std::mem::replace(&mut world.server, mirror);
    world.add_release(&alice(), "acme/app/1.0");
    let tip = tip_of(&world.server).expect("a commit");
    world.server.stop();
    let said = Launch::mirror(&url, &world.server.data_dir()).refusal();
    assert!(said.contains(&url) && said.contains(&tip) && said.contains("does not know"), "{said}");
    assert!(!world.server.data_dir().join("mirror.origin").exists());
    assert!(world.server.data_dir().join("nonces.sqlite").exists(), "nothing was touched");
    drop(origin);
}

#[test]
fn a_clone_of_the_origin_is_a_good_beginning() {
    let world = origin();
    let url = url_of(&world.server);
    let mut mirror = TestServer::prepare_as(|dir| Launch::mirror(&url, dir));
    std::fs::create_dir(mirror.data_dir()).unwrap();
    world.git().run(&["clone", "-q", "--mirror", ".", mirror.repository().to_str().unwrap()]);
    world.add_release(&alice(), "acme/app/1.0");
    mirror.start_again();
    await_same(&mirror, &world.server);
    Git::at(mirror.repository()).assert_sound();
}

#[test]
fn a_repository_is_not_taken_over_unasked() {
    let mut world = origin();
    let url = url_of(&world.server);
    let mut other = world.server.clone_mirror();
    other.stop();
    world.server.stop();
    let said = Launch::mirror(&url, &other.data_dir()).refusal();
    assert!(said.contains(&url) && said.contains("cannot be asked"), "{said}");
    assert!(!other.data_dir().join("mirror.origin").exists());
}
