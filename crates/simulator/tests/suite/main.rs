//! The first seeds. Thousands: `cargo run --release -p countersign-simulator` (docs/assurance.md).

use countersign_simulator::script::{Chance, Guarantee, Script};
use countersign_simulator::{nodes, order::OrderCare, run, run_all};

const SEEDS: u64 = 110;

#[test]
fn what_must_hold_holds_whatever_the_disk_and_the_network_do() {
    let total = run_all(0..SEEDS).unwrap_or_else(|failed| panic!("{failed}"));
    println!("{total:?}");
    assert!(total.crashes > 0 && total.answered > 0);
}

#[test]
fn an_order_that_trusts_the_clocks_of_its_nodes_is_found_out() {
    let found = (0..50).find_map(|seed| {
        nodes::play_on(Chance::new(seed), &mut Script::default(), OrderCare::TrustsNodes).err()
    });
    assert_eq!(found.map(|breach| breach.invariant), Some(Guarantee::OneClock));
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    for seed in 0..4 {
        assert_eq!(run(seed).to_string(), run(seed).to_string(), "{seed}");
    }
}
