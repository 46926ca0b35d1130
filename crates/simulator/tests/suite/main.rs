//! The first seeds. Thousands: `cargo run --release -p countersign-simulator` (docs/assurance.md).

use countersign_simulator::{figures::RunFigures, run};

const SEEDS: u64 = 200;
const SEED: &str = "COUNTERSIGN_SEED";

#[test]
fn what_must_hold_holds_whatever_the_disk_and_the_network_do() {
    let seeds = match std::env::var(SEED) {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (0..SEEDS).collect(),
    };
    let mut total = RunFigures::default();
    for seed in seeds {
        let played = run(seed);
        match played.result {
            Ok(figures) => total.add(figures),
            Err(_) => panic!("{played}"),
        }
    }
    println!("{total:?}");
    assert!(total.crashes > 0 && total.answered > 0);
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    for seed in 0..4 {
        assert_eq!(run(seed).to_string(), run(seed).to_string(), "{seed}");
    }
}
