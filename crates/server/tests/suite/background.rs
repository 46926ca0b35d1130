//! Tries: how long the server waits between them, and what it says about them.

use std::time::Duration;

use countersign_server::follow::background::{Attempt, Backoff, Retries, keep_trying};
use tokio::{sync::watch, time::Instant};

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

/// Fails in its first rounds, and notes what happens and when.
struct Clumsy {
    failures: usize,
    begun: Instant,
    seen: Vec<(u64, &'static str)>,
}

impl Clumsy {
    fn note(&mut self, what: &'static str) {
        self.seen.push((self.begun.elapsed().as_secs(), what));
    }
}

impl Attempt for Clumsy {
    type Failure = &'static str;

    async fn attempt(&mut self) -> Result<(), &'static str> {
        match self.failures.checked_sub(1) {
            Some(left) => {
                self.failures = left;
                Err(if left == 1 { "expected" } else { "failed" })
            }
            None => {
                self.note("worked");
                Ok(())
            }
        }
    }

    fn report(&mut self, failure: &&'static str, was_failing: bool) {
        self.note(if was_failing { "still" } else { failure });
    }

    fn recover(&mut self) {
        self.note("again");
    }

    fn wait(&mut self, _: &&'static str, backoff: &mut Backoff) -> Duration {
        backoff.next_wait(0.0, None)
    }

    fn is_expected(&self, failure: &&'static str) -> bool {
        *failure == "expected"
    }

    async fn rest(&mut self) {
        tokio::time::sleep(SECOND * 10).await;
        self.failures = usize::from(self.seen.len() < 6);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_said_once_and_so_is_their_end_until_the_server_stops() {
    let (stop, stopped) = watch::channel(false);
    let task = Clumsy { failures: 3, begun: Instant::now(), seen: Vec::new() };
    let retries = Retries { min: SECOND, max: SECOND * 60 };
    let trying = tokio::spawn(keep_trying(task, retries, stopped));
    tokio::time::sleep(SECOND * 35).await;
    stop.send_replace(true);
    let seen = trying.await.unwrap().seen;
    let expected = [
        (0, "failed"),
        (3, "still"),
        (7, "worked"),
        (7, "again"),
        // The waits begin anew.
        (17, "failed"),
        (18, "worked"),
        (18, "again"),
        (28, "worked"),
    ];
    assert_eq!(seen, expected);
}
