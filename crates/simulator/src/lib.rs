//! Runs the writer, the followers and the log on simulated disks and networks. One seed decides everything that is left
//! to chance, so each failure can be repeated (docs/assurance.md).

pub mod chance;
pub mod clock;
pub mod disk_state;
pub mod expected;
pub mod figures;
pub mod log_book;
pub mod machine;
pub mod mirror;
pub mod nodes;
pub mod order;
pub mod script;
pub mod shadow;
pub mod sim_disk;
pub mod single;
pub mod wish;
pub mod witness;

use crate::{
    chance::Chance,
    script::{PlayedRun, Script},
};

/// Plays the run of this seed.
pub fn run(seed: u64) -> PlayedRun {
    let mut script = Script::default();
    let chance = Chance::new(seed);
    let result = match seed % 4 {
        0 | 1 => single::play(chance, &mut script),
        2 => nodes::play(chance, &mut script),
        _ => mirror::play(chance, &mut script),
    };
    PlayedRun { seed, result, script }
}
