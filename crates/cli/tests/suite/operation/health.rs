//! `/healthz` and `/readyz`, and what they say while the server stops.

use crate::support::{Answer, Person, Request, SignersFile, World, client::Computer, http};

#[test]
fn a_server_that_cannot_commit_is_not_ready_until_it_can_again() {
    let alice = Person::named("alice");
    let world = World::start();
    world.register(&alice, "acme/one", &SignersFile::of(1, &[&alice])).ok();
    // The branch is where nothing can be written.
    let heads = world.server.repository().join("refs/heads");
    let aside = world.server.repository().join("refs/aside");
    std::fs::rename(&heads, &aside).unwrap();
    world.register(&alice, "acme/two", &SignersFile::of(1, &[&alice])).error(500);
    world.server.get("/readyz").refused(503, "could not be committed");
    world.server.get("/healthz").ok();
    let computer = Computer::of(&world.server);
    computer.run(&["ping"]).ok();
    computer.run(&["ping", "--ready"]).failed(5).says(&["could not be committed"]);
    std::fs::rename(&aside, &heads).unwrap();
    world.register(&alice, "acme/two", &SignersFile::of(1, &[&alice])).ok();
    world.server.get("/readyz").ok();
    computer.run(&["ping", "--ready"]).ok();
}

#[test]
fn a_server_that_finishes_its_last_requests_is_healthy_and_not_ready() {
    let alice = Person::named("alice");
    let mut world = World::start_with(|launch, _| launch.arg("--dev").with_metrics());
    let metrics = world.server.metrics_address();
    let ask = |path: &str| http::send(metrics, &Request::get(path));
    ask("/readyz").ok();
    let (answer, keeper) = Answer::held(SignersFile::of(1, &[&alice]).bytes());
    world.files.set("/acme/app/svc.signers.json", answer);
    let url = world.files.url("/acme/app/svc.signers.json");
    std::thread::scope(|scope| {
        let held = scope.spawn(|| world.register_url(&alice, &url));
        keeper.await_request();
        world.server.signal("TERM");
        while http::try_send(world.server.address(), &Request::get("/healthz")).is_ok() {
            std::thread::yield_now();
        }
        ask("/readyz").refused(503, "stopping");
        ask("/healthz").ok();
        keeper.release();
        held.join().unwrap().ok();
    });
    assert_eq!(world.server.wait().code(), Some(0));
}
