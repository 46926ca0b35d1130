//! One time for a change: its decision and its commit have it, and no commit is dated before the one it continues
//! (D191).

use std::sync::{Arc, atomic::AtomicI64, atomic::Ordering};

use countersign_core::{rules::snapshot::Change, values::time::Timestamp};
use countersign_store::{Options, Repository, Store, StoreError, machine::clock::Clock};

use crate::support::{Fixture, change, options};

const START: i64 = 1_770_000_000;
const HOUR: i64 = 3_600;

fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds).unwrap()
}

/// A store whose clock shows `clock`, and jumps by `jump` seconds after each look at it.
fn start(fixture: &Fixture, clock: &Arc<AtomicI64>, jump: i64) -> Store {
    let clock = Arc::clone(clock);
    let clock = Clock::new(move || seconds(clock.fetch_add(jump, Ordering::Relaxed)));
    let options = Options { clock, ..options() };
    Store::start(Repository::open(&fixture.repository()).unwrap(), options).unwrap()
}

/// Makes a change. Returns the time that the decision got.
async fn act(store: &Store, name: &str) -> Result<Timestamp, StoreError> {
    let change = change(&[&format!("+{name}=1")]);
    let decide = move |_: &_, now| Ok::<(Change, Timestamp), ()>((change.clone(), now));
    store.transact(decide).await.map(Result::unwrap)
}

fn commit_times(store: &Store) -> Vec<i64> {
    let newest = store.head().commit;
    let mut times: Vec<i64> =
        store.recent_commits().read_back(newest).map(|commit| commit.unwrap().time.unix_seconds()).collect();
    times.reverse();
    times
}

#[tokio::test]
async fn a_decision_gets_the_time_of_its_commit_however_the_clock_jumps() {
    let (fixture, clock) = (Fixture::in_memory(), Arc::new(AtomicI64::new(START)));
    let store = start(&fixture, &clock, 900);
    let mut decided = vec![START];
    for name in ["a", "b", "c"] {
        decided.push(act(&store, name).await.unwrap().unix_seconds());
    }
    assert_eq!(commit_times(&store), decided);
    assert_eq!(decided[3], START + 3 * 900, "each change looks at the clock once");
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_make_the_history_run_backwards_also_after_a_restart() {
    let (fixture, clock) = (Fixture::in_memory(), Arc::new(AtomicI64::new(START)));
    let store = start(&fixture, &clock, 0);
    act(&store, "a").await.unwrap();
    clock.store(START - HOUR, Ordering::Relaxed);
    assert_eq!(act(&store, "b").await.unwrap(), seconds(START));
    drop(store);
    let store = start(&fixture, &clock, 0);
    assert_eq!(act(&store, "c").await.unwrap(), seconds(START));
    clock.store(START + 1, Ordering::Relaxed);
    assert_eq!(act(&store, "d").await.unwrap(), seconds(START + 1));
    assert_eq!(commit_times(&store), [START, START, START, START, START + 1]);
}

#[tokio::test]
async fn while_the_clock_is_more_than_an_hour_behind_nothing_changes() {
    let (fixture, clock) = (Fixture::in_memory(), Arc::new(AtomicI64::new(START)));
    let store = start(&fixture, &clock, 0);
    let behind = seconds(START - HOUR - 1);
    clock.store(behind.unix_seconds(), Ordering::Relaxed);
    let refused = act(&store, "a").await.unwrap_err();
    assert!(
        matches!(refused, StoreError::ClockBehind { clock, newest } if clock == behind && newest == seconds(START))
    );
    assert!(store.check_clock(behind).is_err() && store.check_clock(seconds(START - HOUR)).is_ok());
    assert_eq!(commit_times(&store), [START]);
    clock.store(START, Ordering::Relaxed);
    act(&store, "a").await.unwrap();
}
