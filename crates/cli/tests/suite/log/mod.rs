//! The log of all commits (D82–D90).

use countersign_core::log::checkpoint::Checkpoint;

use crate::support::{World, waiting::wait_until, witnesses::ORIGIN, witnesses::checkpoint_of};

mod kills;
mod operator;
mod served;

/// The newest checkpoint, once it covers all commits.
#[track_caller]
fn await_all(world: &World) -> Checkpoint {
    let size = world.git().commit_count() as u64;
    let mut newest = checkpoint_of(&world.server);
    wait_until("there is no checkpoint of all commits", || {
        newest = checkpoint_of(&world.server);
        newest.checkpoint().size >= size
    });
    assert_eq!(newest.checkpoint().origin, ORIGIN);
    newest.checkpoint().clone()
}
