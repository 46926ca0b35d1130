//! A repository that was restored from a backup does not keep the backup as its remote (D58).

use crate::support::{Git, Person, SignersFile, World};

#[test]
fn a_restored_repository_forgets_its_remotes_and_keeps_everything_else() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let mut copy = world.server.clone_mirror();
    copy.await_log("its remotes were removed", 1);
    let git = Git::at(copy.repository());
    assert_eq!(git.run(&["remote"]), "");
    assert_eq!(git.run(&["config", "core.bare"]), "true");
    copy.stop();
    git.run(&["config", "pack.window", "5"]);
    git.run(&["remote", "add", "two", "https://example.org/two.git"]);
    git.run(&["remote", "add", "three", "https://example.org/three.git"]);
    git.run(&["config", "gc.auto", "7"]);
    copy.start_again();
    assert_eq!(git.run(&["remote"]), "");
    assert_eq!(git.run(&["config", "pack.window"]), "5");
    assert_eq!(git.run(&["config", "gc.auto"]), "7");
    copy.restart();
    git.assert_sound();
    let log = copy.stop_and_read_log();
    assert!(!log.contains("remotes"), "there is nothing more to remove: {log}");
}
