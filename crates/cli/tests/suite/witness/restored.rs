//! A server that was restored from an older copy must not sign what contradicts its witnesses.

use super::asking::{await_staple, copy_dir, release};
use crate::support::{
    metrics::await_value,
    witnesses::{checkpoint_of, log_key_of, start_witnessed},
};

#[test]
fn a_restored_server_signs_nothing_below_what_its_witnesses_have_seen() {
    let (mut world, witness) = start_witnessed();
    let index = release(&world, "1.0");
    let old = await_staple(&world, &index, &[&witness]).proof.index + 1;
    world.server.stop();
    let (dir, copy) = (world.server.data_dir(), world.server.data_dir().with_extension("copy"));
    copy_dir(&dir, &copy);
    world.server.start_again();
    let second = release(&world, "1.1");
    let seen = await_staple(&world, &second, &[&witness]).proof.index + 1;
    assert!(seen > old);
    world.server.stop();
    std::fs::remove_dir_all(&dir).unwrap();
    // With its nonces and its checkpoint, and without both, as a backup of the repository has it.
    for is_bare in [false, true] {
        copy_dir(&copy, &dir);
        if is_bare {
            for name in ["log/checkpoint", "log/cosigned", "nonces.sqlite"] {
                std::fs::remove_file(dir.join(name)).unwrap();
            }
        }
        world.server.start_again();
        world.server.await_log(&format!("has seen {seen} commits"), 1);
        await_value(world.server.metrics_address(), "countersign_log_stopped", 1.0);
        // Everything else goes on.
        release(&world, if is_bare { "2.1" } else { "2.0" });
        if is_bare {
            assert_eq!(world.server.get("/log/checkpoint").status, 503, "it has signed nothing");
        } else {
            assert_eq!(checkpoint_of(&world.server).checkpoint().size, old);
        }
        let log = log_key_of(&world.server);
        assert_eq!(witness.cosigned(&log).unwrap().checkpoint().size, seen);
        world.server.stop();
        std::fs::remove_dir_all(&dir).unwrap();
    }
    assert!(witness.evidence().is_empty(), "it was never asked to cosign a fork");
}
