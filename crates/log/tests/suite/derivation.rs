//! What the log says, compared with what a stranger derives from `git` alone.

use countersign_testing::log_reader::{derive_leaves, root_of};

use crate::support::{Fixture, complete, publish};

#[test]
fn the_root_is_the_one_that_a_clone_gives() {
    let fixture = Fixture::new();
    let log = fixture.start_log();
    fixture.fill();
    let newest = fixture.wait_for_all(&log);
    let leaves = derive_leaves(&fixture.repository());
    assert_eq!(leaves.len() as u64, newest.checkpoint().size);
    assert_eq!(root_of(&leaves), newest.checkpoint().root);
}

#[test]
fn commits_from_before_the_start_are_in_it_as_well() {
    let fixture = Fixture::new();
    fixture.fill();
    let log = fixture.start_log();
    let newest = fixture.wait_for_all(&log);
    assert_eq!(root_of(&derive_leaves(&fixture.repository())), newest.checkpoint().root);
}

#[test]
fn a_file_that_a_change_writes_as_it_was_is_no_change() {
    let fixture = Fixture::new();
    let log = fixture.start_log();
    fixture.fill();
    let release = "https/a.example/443/one/releases/v5";
    let mut change = complete(release);
    // As a decision may write a file again.
    change.files.extend(
        publish(release)
            .files
            .into_iter()
            .filter(|(_, content)| content.as_ref().is_some_and(|content| content.starts_with(b"index"))),
    );
    assert_eq!(change.files.len(), 3);
    fixture.commit(change);
    let newest = fixture.wait_for_all(&log);
    assert_eq!(root_of(&derive_leaves(&fixture.repository())), newest.checkpoint().root);
}
