//! Runs the writer, the followers and the log on simulated disks and networks. One seed decides everything that is left
//! to chance, so each failure can be repeated (docs/assurance.md).

pub mod disk_state;
pub mod expected;
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

use std::{ops::Range, sync::Mutex, sync::atomic::AtomicU64, sync::atomic::Ordering};

use crate::script::{Chance, PlayedRun, RunFigures, Script};

const THREADS: usize = 2;

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

/// Plays the runs of these seeds, and gives what they add up to, or the first one that failed.
pub fn run_all(seeds: Range<u64>) -> Result<RunFigures, Box<PlayedRun>> {
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(Ok(RunFigures::default()));
    let play = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let played = run(seed);
            let mut total = total.lock().expect("no thread panics with it");
            // One failure is enough.
            let Ok(sum) = &mut *total else { return };
            match played.result {
                Ok(figures) => sum.add(figures),
                Err(_) => *total = Err(Box::new(played)),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(play);
        }
    });
    total.into_inner().expect("no thread panics with it")
}
