//! Answers to appends that never arrive: no change is there twice, and none is lost.

use std::{sync::Arc, time::Duration, time::Instant};

use countersign_store::sequence::{Appended, SequenceError};
use countersign_testing::{
    await_until, postgres::PostgresEnd, proxy::LossMoment, proxy::LostAnswer, proxy::Proxy,
};

use crate::support::{World, batch};

const APPEND: &str = "insert into svc_batch";

fn lose(moment: LossMoment, statement: &'static str) -> LostAnswer {
    LostAnswer { statement, nth: 1, moment }
}

fn proxy(world: &World) -> Proxy {
    Proxy::for_postgres(world.postgres.address())
}

#[test]
fn an_append_without_an_answer_is_there_once() {
    let Some(world) = World::start() else { return };
    let proxy = proxy(&world);
    let mut node = world.node_on("one", world.database_at(proxy.address()));
    let mut base = None;
    let mut heads = vec![node.write(&mut base, "first").to_string()];
    for moment in [LossMoment::BeforeEffect, LossMoment::AfterEffect, LossMoment::AfterEffect] {
        proxy.lose(lose(moment, APPEND));
        let batch = batch(base, "lost");
        assert_eq!(node.append(&batch).unwrap(), Appended::Done, "{moment:?}");
        base = Some(batch.head);
        heads.push(batch.head.to_string());
        assert_eq!(world.heads(), heads, "{moment:?}");
    }
    assert_eq!(proxy.lost(), 3);
    assert_eq!(node.state.repeated_appends.get(), 3);
}

#[test]
fn an_append_in_turn_without_an_answer_is_there_once() {
    for moment in [LossMoment::BeforeEffect, LossMoment::AfterEffect] {
        for statement in [APPEND, "commit"] {
            let Some(world) = World::start() else { return };
            let proxy = proxy(&world);
            let (mut one, mut two) =
                (world.node_on("one", world.database_at(proxy.address())), world.node("two"));
            let theirs = two.write(&mut None, "theirs");
            assert_eq!(one.append(&batch(None, "late")).unwrap(), Appended::Behind);
            assert_eq!(one.batches_after(None).unwrap().len(), 1);
            proxy.lose(lose(moment, statement));
            let ours = batch(Some(theirs), "in turn");
            assert_eq!(one.append(&ours).unwrap(), Appended::Done, "{moment:?} {statement}");
            assert_eq!(proxy.lost(), 1, "{moment:?} {statement}");
            assert_eq!(world.heads(), [theirs, ours.head].map(|head| head.to_string()));
        }
    }
}

#[test]
fn a_batch_whose_answer_was_lost_can_still_come_second() {
    let Some(world) = World::start() else { return };
    let proxy = proxy(&world);
    let (mut one, mut two) = (world.node_on("one", world.database_at(proxy.address())), world.node("two"));
    let theirs = two.write(&mut None, "theirs");
    proxy.lose(lose(LossMoment::AfterEffect, APPEND));
    assert_eq!(one.append(&batch(None, "late")).unwrap(), Appended::Behind);
    assert_eq!(world.heads(), [theirs.to_string()]);
}

#[test]
fn an_append_into_silence_ends_in_time_and_keeps_its_id() {
    let Some(world) = World::start() else { return };
    let proxy = proxy(&world);
    let mut node = world.node_on("one", world.database_at(proxy.address()));
    node.order = node.order.with_limit(Duration::from_secs(2));
    let first = node.write(&mut None, "first");
    proxy.blackhole();
    let silent = batch(Some(first), "silent");
    let started = Instant::now();
    let error = node.append(&silent).unwrap_err();
    assert!(matches!(error, SequenceError::Unavailable(_)), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    // What was under way arrives now, or not; the same batch again is the same batch.
    proxy.restore();
    assert_eq!(node.append(&silent).unwrap(), Appended::Done);
    assert_eq!(world.heads(), [first, silent.head].map(|head| head.to_string()));
}

#[test]
fn appends_go_on_over_a_restart_of_the_database() {
    for end in [PostgresEnd::Fast, PostgresEnd::Crash] {
        let Some(mut world) = World::start() else { return };
        let mut node = world.node("one");
        let mut base = None;
        let before = node.write(&mut base, "before");
        world.postgres.stop(end);
        let writer = std::thread::spawn(move || node.write(&mut base, "meanwhile"));
        world.postgres.start_again();
        let meanwhile = writer.join().unwrap();
        assert_eq!(world.heads(), [before, meanwhile].map(|head| head.to_string()));
    }
}

#[test]
fn writers_lose_nothing_while_the_database_is_killed_and_connections_are_cut() {
    const EACH: usize = 150;
    let Some(mut world) = World::start() else { return };
    let proxy = proxy(&world);
    let (mut states, mut writers) = (Vec::new(), Vec::new());
    for name in ["one", "two"] {
        let mut node = world.node_on(name, world.database_at(proxy.address()));
        states.push(Arc::clone(&node.state));
        writers.push(std::thread::spawn(move || {
            let mut base = None;
            (0..EACH).map(|_| node.write(&mut base, "x").to_string()).collect::<Vec<_>>()
        }));
    }
    for round in 1..=6 {
        await_until("writers that go on", || states.iter().any(|state| state.applied().seq >= round * 40));
        proxy.cut();
        if round % 3 == 0 {
            world.postgres.restart(PostgresEnd::Crash);
        }
    }
    let mut written: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    let mut heads = world.heads();
    written.sort();
    heads.sort();
    assert_eq!(heads, written);
}
