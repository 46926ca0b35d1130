//! What the log says, compared with what a stranger derives from `git` alone.

use countersign_testing::log_reader::{derive_leaves, root_of};

use crate::support::{Fixture, complete, index, publish};

#[test]
fn the_root_is_the_one_that_a_clone_gives() {
    let fixture = Fixture::new();
    // From before the start, and while the log follows.
    fixture.fill();
    let log = fixture.start_log();
    let check = || {
        let (newest, leaves) = (fixture.wait_for_all(&log), derive_leaves(&fixture.repository()));
        assert_eq!(leaves.len() as u64, newest.checkpoint().size);
        assert_eq!(root_of(&leaves), newest.checkpoint().root);
    };
    check();
    fixture.commit(publish("https/a.example/443/one/releases/v6"));
    check();
    // A decision may write a file as it was, which is no change.
    let release = "https/a.example/443/one/releases/v5";
    let mut change = complete(release);
    let index = publish(release).files.remove_entry(&index(release)).unwrap();
    change.files.extend([index]);
    assert_eq!(change.files.len(), 3);
    fixture.commit(change);
    check();
}
