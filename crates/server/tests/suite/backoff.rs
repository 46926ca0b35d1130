//! How long to wait before the next try.

use std::time::Duration;

use countersign_server::background::{Backoff, Retries};

const SECOND: Duration = Duration::from_secs(1);

fn waits(retries: Retries, chance: f64, count: usize) -> Vec<u64> {
    let mut backoff = Backoff::new(retries);
    (0..count).map(|_| backoff.next_wait(chance, None).as_secs()).collect()
}

#[test]
fn waits_double_from_the_shortest_to_the_longest() {
    let retries = Retries::default();
    assert_eq!(waits(retries, 0.0, 10), [1, 2, 4, 8, 16, 32, 64, 128, 150, 150]);
    assert_eq!(waits(retries, 1.0, 10), [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
}

#[test]
fn no_wait_is_outside_of_what_the_operator_set_whatever_chance_and_receiver_say() {
    for (min, max) in [(1, 1), (1, 3), (7, 300)] {
        let retries = Retries { min: SECOND * min, max: SECOND * max };
        for chance in [0.0, 0.3, 1.0, 5.0, -1.0] {
            let mut backoff = Backoff::new(retries);
            for asked in [None, Some(Duration::ZERO), Some(SECOND * 2), Some(Duration::MAX)].repeat(10) {
                let wait = backoff.next_wait(chance, asked);
                assert!(wait >= retries.min && wait <= retries.max, "{retries:?} {asked:?}: {wait:?}");
            }
        }
    }
}

#[test]
fn a_receiver_can_ask_for_a_longer_wait_and_not_for_a_shorter_one() {
    let mut backoff = Backoff::new(Retries::default());
    assert_eq!(backoff.next_wait(0.0, Some(SECOND * 90)), SECOND * 90);
    assert_eq!(backoff.next_wait(0.0, Some(SECOND)), SECOND * 2);
    assert_eq!(backoff.next_wait(0.0, Some(SECOND * 9_000)), SECOND * 300);
}
