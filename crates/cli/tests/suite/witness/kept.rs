//! A witness goes on from what it derived before (D270), also after a kill, and derives it again if it is damaged.

use std::fs;

use super::asking::{await_staple, release};
use crate::support::waiting::wait_until;
use crate::support::witnesses::{TestWitness, start_witnessed};

const GOES_ON: &str = "the log goes on from what was derived before";
const AGAIN: &str = "what was derived of the log before cannot be used: it is derived again";

/// Waits until what was derived up to this checkpoint counts after a start.
fn await_kept(witness: &TestWitness, size: u64) {
    let file = witness.server.data_dir().join("witness/replay/checkpoint");
    let size = format!("\n{size}\n");
    wait_until("nothing is kept", || fs::read_to_string(&file).is_ok_and(|note| note.contains(&size)));
}

#[test]
fn a_witness_derives_the_log_again_only_if_what_it_kept_is_damaged() {
    let (world, mut witness) = start_witnessed();
    let mut size = 0;
    let mut cosign = |witness: &TestWitness, name: &str| {
        let index = release(&world, name);
        size = await_staple(&world, &index, &[witness]).proof.index + 1;
        await_kept(witness, size);
    };
    cosign(&witness, "1.0");
    for name in ["1.1", "1.2"] {
        witness.server.kill9();
        witness.server.start_again();
        cosign(&witness, name);
        let log = witness.server.stop_and_read_log();
        assert!(log.contains(GOES_ON) && !log.contains(AGAIN), "{log}");
        witness.server.start_again();
    }
    let leaves = witness.server.data_dir().join("witness/replay/leaves");
    for damage in [0, 200] {
        witness.server.kill9();
        let mut bytes = fs::read(&leaves).unwrap();
        bytes[damage] ^= 1;
        fs::write(&leaves, bytes).unwrap();
        witness.server.start_again();
        cosign(&witness, &format!("2.{damage}"));
        let log = witness.server.stop_and_read_log();
        assert!(!log.contains(GOES_ON), "{log}");
        assert_eq!(log.matches(AGAIN).count(), 1, "{log}");
        witness.server.start_again();
    }
    assert!(witness.evidence().is_empty());
}
