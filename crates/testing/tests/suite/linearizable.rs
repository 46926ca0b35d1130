//! The checker accepts what some order explains, and nothing else. Small histories are compared with all orders.

use std::collections::{BTreeSet, HashSet};

use CallResult::{Read, ReadKey, Signed, SignedBefore, Unknown};
use countersign_testing::linearizable::{CallRecorder, CallResult, Contradiction, RecordedCall, check};
use countersign_testing::{few, steady};
use proptest::prelude::*;

fn call(start: u64, end: u64, result: CallResult) -> RecordedCall {
    RecordedCall { node: usize::try_from(start).unwrap() % 3, start, end, result }
}

fn read(keys: &[usize]) -> CallResult {
    Read(keys.iter().copied().collect())
}

#[track_caller]
fn assert_accepted(calls: &[RecordedCall]) {
    assert!(explains_some_order(calls), "all orders say otherwise");
    if let Err(contradiction) = check(calls) {
        panic!("{contradiction}");
    }
}

#[track_caller]
fn assert_rejected(calls: &[RecordedCall], words: &str) {
    assert!(!explains_some_order(calls), "all orders say otherwise");
    let said = check(calls).unwrap_err().to_string();
    assert!(said.contains(words), "{words:?} is missing in: {said}");
}

/// Tries all orders, by the definition: a call can be next if none of the others ended before it began.
fn explains_some_order(calls: &[RecordedCall]) -> bool {
    fn go_on(
        calls: &[RecordedCall],
        done: u64,
        keys: &BTreeSet<usize>,
        seen: &mut HashSet<(u64, BTreeSet<usize>)>,
    ) -> bool {
        let is_open = |at: &usize| done & (1 << at) == 0;
        let open: Vec<_> = (0..calls.len()).filter(is_open).collect();
        // What is unknown can stay out for ever.
        if open.iter().all(|at| matches!(calls[*at].result, Unknown(_))) {
            return true;
        }
        if !seen.insert((done, keys.clone())) {
            return false;
        }
        let ends = open.iter().filter(|at| !matches!(calls[**at].result, Unknown(_)));
        let first_end = ends.map(|at| calls[*at].end).min().unwrap_or(u64::MAX);
        open.iter().filter(|at| calls[**at].start <= first_end).any(|at| {
            let mut after = keys.clone();
            let is_possible = match &calls[*at].result {
                Signed(key) => after.insert(*key),
                SignedBefore(key) => keys.contains(key),
                Unknown(key) => {
                    after.insert(*key);
                    true
                }
                Read(seen) => seen == keys,
                ReadKey { key, is_there } => keys.contains(key) == *is_there,
            };
            is_possible && go_on(calls, done | 1 << at, &after, seen)
        })
    }
    go_on(calls, 0, &BTreeSet::new(), &mut HashSet::new())
}

fn look(key: usize, is_there: bool) -> CallResult {
    ReadKey { key, is_there }
}

#[test]
fn what_one_order_explains_is_accepted() {
    assert_accepted(&[]);
    let one_after_the_other = [
        read(&[]),
        Signed(1),
        read(&[1]),
        SignedBefore(1),
        Signed(2),
        read(&[1, 2]),
        look(2, true),
        look(3, false),
    ];
    let calls = one_after_the_other.into_iter().zip(0..);
    assert_accepted(&calls.map(|(result, at)| call(2 * at, 2 * at + 1, result)).collect::<Vec<_>>());
    // At the same time, in any one order.
    let both = [call(0, 10, Signed(1)), call(1, 9, Signed(2))];
    assert_accepted(&[&both[..], &[call(2, 3, read(&[2])), call(4, 5, read(&[1, 2]))]].concat());
    assert_accepted(&[call(0, 10, Signed(1)), call(1, 2, SignedBefore(1))]);
    // What is unknown takes effect later or never.
    for (second, third) in [
        (read(&[]), read(&[1])),
        (read(&[]), read(&[])),
        (Signed(1), read(&[1])),
        (SignedBefore(1), read(&[1])),
    ] {
        assert_accepted(&[call(0, 1, Unknown(1)), call(2, 3, second), call(4, 5, third)]);
    }
}

#[test]
fn what_no_order_explains_is_rejected_and_shown() {
    let after = |first, second| [call(0, 1, first), call(2, 3, second)];
    let three = |first, second, third| [call(0, 1, first), call(2, 3, second), call(4, 5, third)];
    let stale = three(Signed(1), Signed(2), read(&[1]));
    assert_rejected(&stale, "[4..5] node 1 reads {1}\n    comes before the next: it does not show key 2");
    let Err(Contradiction::Cycle(cycle)) = check(&stale) else { panic!("a cycle") };
    assert_eq!(cycle.len(), 2, "the shortest explanation");
    let two_orders =
        [call(0, 10, Signed(1)), call(1, 9, Signed(2)), call(2, 6, read(&[1])), call(3, 7, read(&[2]))];
    assert_rejected(&two_orders, "does not show");
    assert_rejected(&three(Signed(1), read(&[1]), read(&[])), "it does not show key 1");
    assert_rejected(&after(Signed(1), look(1, false)), "it does not show key 1");
    assert_rejected(&after(look(1, true), Signed(1)), "that one shows key 1");
    assert_rejected(&[call(0, 5, Signed(1)), call(1, 6, Signed(1))], "key 1 succeeded twice");
    assert_rejected(&[call(0, 1, SignedBefore(1))], "no call can have added key 1");
    assert_rejected(&after(SignedBefore(1), Signed(1)), "that one shows key 1");
    assert_rejected(&after(Signed(1), read(&[1, 7])), "no call can have added key 7");
    // What is unknown takes no effect before it began, and none if it was repeated with success.
    assert_rejected(&after(read(&[1]), Unknown(1)), "ended before");
    assert_rejected(&three(Unknown(1), read(&[1]), read(&[])), "it does not show key 1");
    assert_rejected(&three(Unknown(1), read(&[1]), Signed(1)), "that one shows key 1");
}

#[test]
fn hundreds_of_calls_take_no_time() {
    let recorder = CallRecorder::default();
    let present = std::sync::Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (recorder, present) = (&recorder, &present);
            scope.spawn(move || {
                for round in 0..50 {
                    let key = thread * 50 + round;
                    recorder.record(thread, || {
                        Some(if present.lock().unwrap().insert(key) {
                            Signed(key)
                        } else {
                            SignedBefore(key)
                        })
                    });
                    recorder.record(thread, || Some(Read(present.lock().unwrap().clone())));
                    recorder.record(thread, || None);
                }
            });
        }
    });
    let mut calls = recorder.into_calls();
    assert_eq!(calls.len(), 800);
    assert_eq!(check(&calls), Ok(()));
    // A key is missing in one of the last reads.
    let last = calls.iter_mut().max_by_key(|call| (matches!(call.result, Read(_)), call.start)).unwrap();
    let Read(keys) = &mut last.result else { panic!("a read") };
    keys.remove(&0);
    assert!(matches!(check(&calls), Err(Contradiction::Cycle(_))));
}

fn any_call() -> impl Strategy<Value = (u64, u64, CallResult)> {
    let result = prop_oneof![
        (0..3_usize).prop_map(Signed),
        (0..3_usize).prop_map(SignedBefore),
        (0..3_usize).prop_map(Unknown),
        proptest::collection::btree_set(0..3_usize, 0..3).prop_map(Read),
        (0..3_usize, proptest::bool::ANY).prop_map(|(key, is_there)| ReadKey { key, is_there }),
    ];
    (0..12_u64, 1..8_u64, result)
}

/// A history that a real set gave: each call takes effect at its own time between start and end.
fn true_history(plan: Vec<(u64, u64, CallResult)>) -> Vec<RecordedCall> {
    let mut moments: Vec<_> = plan.into_iter().enumerate().collect();
    moments.sort_by_key(|(at, (start, length, _))| (start + length / 2, *at));
    let mut keys = BTreeSet::new();
    let answer = |result| match result {
        Signed(key) | SignedBefore(key) => {
            if keys.insert(key) {
                Signed(key)
            } else {
                SignedBefore(key)
            }
        }
        Unknown(key) => {
            keys.insert(key);
            Unknown(key)
        }
        Read(_) => Read(keys.clone()),
        ReadKey { key, .. } => ReadKey { key, is_there: keys.contains(&key) },
    };
    let mut answer = answer;
    moments
        .into_iter()
        .map(|(_, (start, length, result))| call(start, start + length, answer(result)))
        .collect()
}

proptest! {
    #![proptest_config(few(steady(), 3_000))]

    #[test]
    fn it_agrees_with_a_search_through_all_orders(plan in proptest::collection::vec(any_call(), 0..8)) {
        let calls: Vec<_> =
            plan.into_iter().map(|(start, length, result)| call(start, start + length, result)).collect();
        prop_assert_eq!(check(&calls).is_ok(), explains_some_order(&calls));
    }

    #[test]
    fn it_agrees_about_true_histories_and_those_with_one_lie(
        plan in proptest::collection::vec(any_call(), 1..10),
        lie in any_call(),
        place in 0..10_usize,
    ) {
        let mut calls = true_history(plan);
        prop_assert!(check(&calls).is_ok() && explains_some_order(&calls));
        let place = place % calls.len();
        calls[place].result = lie.2;
        prop_assert_eq!(check(&calls).is_ok(), explains_some_order(&calls));
    }
}
