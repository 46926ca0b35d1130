//! How fast a mirror catches up. It prints the figure when it is asked to, and asserts only that the mirror arrives:
//! `COUNTERSIGN_COMMITS=20000 cargo test --release -p countersign --test suite mirror::speed -- --nocapture`.

use std::time::Instant;

use super::interrupted::lively_origin;
use crate::support::mirrors::{await_same, start_mirror, url_of};

#[test]
fn a_mirror_catches_up() {
    let asked = std::env::var("COUNTERSIGN_COMMITS").ok().and_then(|count| count.parse().ok());
    let Some(commits) = asked else { return };
    let world = lively_origin(commits);
    let commits = world.git().commit_count();
    let begun = Instant::now();
    let mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    let seconds = begun.elapsed().as_secs_f64();
    println!("{commits} commits in {seconds:.2} s: {:.0} a second", commits as f64 / seconds);
}
