//! SIGKILL while checkpoints are made: none is ever smaller, and each is of the same log.

use std::time::Duration;

use countersign_core::log::{checkpoint::SignedCheckpoint, note::Note};
use countersign_testing::log_reader::{derive_leaves, root_of};

use super::await_all;
use crate::support::witnesses::{LogSetup, checkpoint_of, log_key_of};
use crate::support::{Person, SignersFile};

const KILLS: u64 = 8;

#[test]
fn after_a_kill_no_checkpoint_is_smaller_and_all_are_of_one_log() {
    let mut world = LogSetup::default().start();
    let alice = Person::named("alice");
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let mut seen = vec![await_all(&world)];
    for kill in 0..KILLS {
        for release in 0..3 {
            world.add_signed_release(&format!("acme/app/{kill}.{release}"), &[&alice]);
            seen.push(checkpoint_of(&world.server).checkpoint().clone());
        }
        // Each time at another moment after the last change: while it is derived, signed, or stored.
        std::thread::sleep(Duration::from_millis(150 * kill));
        seen.push(checkpoint_of(&world.server).checkpoint().clone());
        let key = log_key_of(&world.server);
        world.server.kill9();
        let kept = std::fs::read(world.server.data_dir().join("log/checkpoint")).unwrap();
        let kept = SignedCheckpoint::open(&Note::parse(&kept).unwrap(), &[key], &[]).unwrap();
        seen.push(kept.checkpoint().clone());
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
