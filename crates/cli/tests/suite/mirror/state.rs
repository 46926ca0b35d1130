//! The state of a release (D232) is the same on a mirror, and a mirror that is behind is called so, and nothing worse.

use crate::support::mirrors::{await_same, start_mirror, url_of};
use crate::support::{SignersFile, World, alice, bob, carol, client::Computer, client::add_files, days_ago};

fn signers(days: i64) -> SignersFile {
    SignersFile::of(2, &[&alice(), &bob(), &carol()]).redated(days_ago(days))
}

fn origin() -> (World, String) {
    let world = World::with_project(&signers(10), &[&alice(), &bob(), &carol()]);
    let index = add_files(&world, "acme/app/1.0", &[("app.tar.gz", b"one")], &[&alice(), &bob()]);
    (world, index)
}

#[test]
fn a_mirror_answers_with_the_same_bytes() {
    let (world, index) = origin();
    world.propose(&alice(), "acme/app", &signers(5)).ok();
    let mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    let project = world.id("acme/app");
    for path in [index, format!("{project}?newest=true"), format!("{project}?tag=1.0"), project] {
        let target = format!("/v1/state/{path}");
        let [shown, copied] = [&world.server, &mirror].map(|server| server.get(&target));
        assert_eq!((shown.status, copied.status), (200, 200), "{target}");
        assert!(shown.body == copied.body, "{target}");
        assert_eq!(shown.header("etag"), copied.header("etag"));
    }
}

#[test]
fn a_mirror_that_lags_is_behind_and_lies_to_no_one() {
    let (mut world, _) = origin();
    let mut mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    mirror.stop();
    world.rotate("acme/app", &signers(5), &[&alice(), &bob()]);
    let (url, computer) = (world.files.url("/acme/app/1.0/app.tar.gz"), Computer::of(&world.server));
    computer.run(&["download", &url]).ok();
    // The mirror learns nothing more.
    world.server.stop();
    mirror.start_again();
    let ran = computer.run(&["download", &url, "--force", "--server", &url_of(&mirror)]).failed(5);
    ran.says(&["behind", "older history", "ask another server"])
        .says_nothing_of(&["lies", "rewrites", "PAST"]);
}
