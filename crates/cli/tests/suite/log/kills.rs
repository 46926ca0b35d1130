//! SIGKILL while checkpoints are made: none is ever smaller, and each is of the same log.

use std::time::Duration;

use countersign_testing::log_reader::{derive_leaves, root_of};

use super::{await_all, checkpoint, log_key, open, start};
use crate::support::{Person, SignersFile};

const KILLS: u64 = 8;

#[test]
fn after_a_kill_no_checkpoint_is_smaller_and_all_are_of_one_log() {
    let mut world = start();
    let alice = Person::named("alice");
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let key = log_key(&world.server);
    let mut seen = vec![await_all(&world)];
    for kill in 0..KILLS {
        for release in 0..3 {
            world.add_signed_release(&format!("acme/app/{kill}.{release}"), &[&alice]);
            seen.extend(checkpoint(&world.server, &key));
        }
        // Each time at another moment after the last change: while it is derived, signed, or stored.
        std::thread::sleep(Duration::from_millis(150 * kill));
        seen.extend(checkpoint(&world.server, &key));
        world.server.kill9();
        let kept = std::fs::read(world.server.data_dir().join("log/checkpoint")).unwrap();
        seen.push(open(&kept, &key));
        if kill % 3 == 2 {
            // Also while it starts.
            world.server.start_and_kill(Duration::from_millis(40 * kill));
        }
        world.server.start_again();
    }
    seen.push(await_all(&world));
    assert!(seen.is_sorted_by_key(|checkpoint| checkpoint.size), "{seen:?}");
    let leaves = derive_leaves(&world.server.repository());
    for checkpoint in seen {
        assert_eq!(checkpoint.root, root_of(&leaves[..usize::try_from(checkpoint.size).unwrap()]));
    }
}
