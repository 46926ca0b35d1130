//! Nonces that nodes share.

use std::{sync::Arc, time::Duration, time::Instant};

use countersign_core::values::time::Timestamp;
use countersign_store::machine::clock::WriteFailure;
use countersign_store::{machine::clock::Clock, nonces::NonceError, sequence::Sequencer as _};

use countersign_testing::await_until;

use crate::support::{World, at, batch};

fn now() -> Timestamp {
    Clock::system().now()
}

fn later() -> Timestamp {
    now().later(Duration::from_secs(600))
}

#[test]
fn of_two_nodes_that_get_one_request_twice_one_accepts_it_once() {
    const ROUNDS: u8 = 200;
    let Some(world) = World::start() else { return };
    let (one, two) = (world.node("one"), world.node("two"));
    let nonces = [world.nonces(&one), world.nonces(&two)];
    world.runtime.block_on(async {
        for round in 0..ROUNDS {
            // Twice on each node, at once.
            let calls = [0, 1, 0, 1].map(|node: usize| nonces[node].remember([round; 16], later(), now()));
            let answers = futures_util::future::join_all(calls).await;
            let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
            let used = answers.iter().filter(|answer| matches!(answer, Err(NonceError::Used))).count();
            assert_eq!((accepted, used), (1, 3), "round {round}: {answers:?}");
        }
    });
    let stats = nonces.each_ref().map(|nonces| (nonces.stats().stored.get(), nonces.stats().repeated.get()));
    assert_eq!(stats[0].0 + stats[1].0, u64::from(ROUNDS));
    assert_eq!(stats[0].1 + stats[1].1, 3 * u64::from(ROUNDS));
}

#[test]
fn a_request_from_before_the_database_lost_nonces_is_not_accepted_again() {
    let Some(world) = World::start() else { return };
    let node = world.node("one");
    let nonces = world.nonces(&node);
    let remember = |nonce: [u8; 16], signed| world.runtime.block_on(nonces.remember(nonce, later(), signed));
    let signed = now();
    remember([1; 16], signed).unwrap();
    world.postgres.sql("delete from svc_nonce");
    let noticed = remember([1; 16], signed);
    assert!(matches!(noticed, Err(NonceError::Unavailable(_))), "{noticed:?}");
    world.postgres.sql("delete from svc_nonce");
    let again = remember([1; 16], signed);
    assert!(matches!(again, Err(NonceError::Forgotten)), "{again:?}");
    remember([2; 16], later()).unwrap();
}

#[test]
fn a_request_goes_on_when_this_node_has_seen_what_was_confirmed_before() {
    let Some(world) = World::start() else { return };
    let (mut writer, mut reader) = (world.node("writer"), world.node("reader"));
    let nonces = world.nonces(&reader);
    let mut base = None;
    writer.write(&mut base, "a change");
    // Its reader of news sleeps until it is woken.
    let state = Arc::clone(&reader.state);
    world.runtime.block_on(async {
        let call = nonces.remember([1; 16], later(), now());
        let follow = async {
            state.await_news().await;
            tokio::task::spawn_blocking(move || reader.catch_up(None)).await.unwrap()
        };
        let (answer, caught_up) = futures_util::future::join(call, follow).await;
        answer.unwrap();
        assert_eq!(caught_up, base);
        assert_eq!(state.applied().head, base);
    });
    // One that does not come that far refuses, and the nonce is used.
    let third = world.node("third");
    let nonces = world.nonces(&third);
    world.runtime.block_on(async {
        let answer = nonces.remember([2; 16], later(), now()).await;
        assert!(matches!(answer, Err(NonceError::Unavailable(_))), "{answer:?}");
        let answer = nonces.remember([2; 16], later(), now()).await;
        assert!(matches!(answer, Err(NonceError::Used)), "{answer:?}");
    });
    assert_eq!(third.state.lag(), 1);
}

#[test]
fn requests_from_before_the_floor_are_refused_on_every_node() {
    let Some(world) = World::start() else { return };
    let (mut one, two) = (world.node("one"), world.node("two"));
    let nonces = world.nonces(&two);
    let before = now();
    world.runtime.block_on(nonces.remember([1; 16], later(), before)).unwrap();
    one.order.forget_nonces().unwrap();
    let answer = world.runtime.block_on(nonces.remember([2; 16], later(), before));
    assert!(matches!(answer, Err(NonceError::Forgotten)), "{answer:?}");
    world.runtime.block_on(nonces.remember([3; 16], later(), later())).unwrap();
}

#[test]
fn a_request_whose_nonce_may_be_forgotten_is_refused() {
    let Some(world) = World::start() else { return };
    let node = world.node("one");
    let nonces = world.nonces(&node);
    world.postgres.sql("update svc_repository set nonce_purged = to_timestamp(1000)");
    let remember = |nonce, expires| world.runtime.block_on(nonces.remember([nonce; 16], at(expires), now()));
    assert!(matches!(remember(1, 999), Err(NonceError::Forgotten)));
    assert!(matches!(remember(2, 1_000), Err(NonceError::Forgotten)));
    remember(3, 1_001).unwrap();
}

#[test]
fn without_the_database_requests_are_refused_soon_and_accepted_when_it_is_back() {
    let Some(mut world) = World::start() else { return };
    let mut node = world.node("one");
    node.append(&batch(None, "x")).unwrap();
    node.catch_up(None);
    let nonces = world.nonces(&node);
    world.runtime.block_on(nonces.remember([1; 16], later(), now())).unwrap();
    world.postgres.stop(countersign_testing::postgres::PostgresEnd::Crash);
    let started = Instant::now();
    for nonce in 2..20 {
        let answer = world.runtime.block_on(nonces.remember([nonce; 16], later(), now()));
        assert!(matches!(answer, Err(NonceError::Unavailable(_))), "{answer:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(nonces.stats().failing(Instant::now()), Some(WriteFailure::Other));
    world.postgres.start_again();
    let mut numbers = (20..=u64::MAX).map(|number| u128::from(number).to_be_bytes());
    await_until("a database that is back", || {
        let nonce = numbers.next().unwrap();
        world.runtime.block_on(nonces.remember(nonce, later(), now())).is_ok()
    });
    let answer = world.runtime.block_on(nonces.remember([1; 16], later(), now()));
    assert!(matches!(answer, Err(NonceError::Used)), "{answer:?}");
}
