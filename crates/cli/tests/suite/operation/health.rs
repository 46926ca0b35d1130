//! `/healthz` and `/readyz`. What they say while the server stops is in `shutdown`.

use crate::support::{Person, SignersFile, World, client::Computer};

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
