//! A mirror that is behind is called so, and nothing worse.

use crate::support::mirrors::{await_same, start_mirror, url_of};
use crate::support::{SignersFile, World, alice, bob, carol, client::Computer, client::add_files, days_ago};

fn signers(days: i64) -> SignersFile {
    SignersFile::of(2, &[&alice(), &bob(), &carol()]).redated(days_ago(days))
}

#[test]
fn a_mirror_that_lags_is_behind_and_lies_to_no_one() {
    let mut world = World::with_project(&signers(10), &[&alice(), &bob(), &carol()]);
    add_files(&world, "acme/app/1.0", &[("app.tar.gz", b"one")], &[&alice(), &bob()]);
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
