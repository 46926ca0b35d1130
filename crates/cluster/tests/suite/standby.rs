//! Synchronous replication: an append is done when the standby has it, whatever the primary says.

use std::{sync::Arc, time::Duration, time::Instant};

use countersign_store::{nonces::NonceError, sequence::Appended, sequence::SequenceError};
use countersign_testing::{await_until, postgres::PostgresEnd, postgres::Standby};

use crate::support::{World, at, batch};

const WAITING: &str = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
const CANCEL: &str = "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'";

#[test]
fn an_append_whose_wait_for_the_standby_was_cancelled_is_not_done_before_the_standby_has_it() {
    let Some(world) = World::start() else { return };
    let standby = world.postgres.start_standby(Standby::Synchronous);
    let mut node = world.node("one");
    node.order = node.order.with_limit(Duration::from_secs(60));
    let mut base = None;
    let first = node.write(&mut base, "first");
    standby.pause();
    let ours = batch(base, "cancelled");
    let (head, state) = (ours.head, Arc::clone(&node.state));
    let writer = std::thread::spawn(move || node.append(&ours).unwrap());
    world.postgres.await_row(WAITING, "1");
    world.postgres.sql(CANCEL);
    // The primary has now said that it is done, with a warning. The node asks again, and that waits too.
    await_until("a repetition", || state.repeated_appends.get() >= 1);
    world.postgres.await_row(WAITING, "1");
    world.postgres.sql(CANCEL);
    await_until("a repetition", || state.repeated_appends.get() >= 2);
    assert!(!writer.is_finished());
    standby.resume();
    assert_eq!(writer.join().unwrap(), Appended::Done);
    assert_eq!(world.heads(), [first, head].map(|head| head.to_string()));
    // If the primary is lost now, the batch is not.
    standby.promote();
    assert_eq!(standby.sql("select count(*) from svc_batch"), "2");
}

#[test]
fn without_the_standby_appends_and_nonces_are_refused_in_time() {
    let Some(world) = World::start() else { return };
    let standby = world.postgres.start_standby(Standby::Synchronous);
    let mut node = world.node("one");
    node.order = node.order.with_limit(Duration::from_secs(2));
    let nonces = world.nonces(&node);
    let mut base = None;
    let first = node.write(&mut base, "first");
    standby.pause();
    let ours = batch(base, "waits");
    let started = Instant::now();
    let error = node.append(&ours).unwrap_err();
    assert!(matches!(error, SequenceError::Unavailable(_)), "{error:?}");
    let answer = world.runtime.block_on(nonces.remember([1; 16], at(9_000_000_000), at(0)));
    assert!(matches!(answer, Err(NonceError::Unavailable(_))), "{answer:?}");
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
    standby.resume();
    // The batch kept its id: it is there once.
    node.order = node.order.with_limit(Duration::from_secs(20));
    assert_eq!(node.append(&ours).unwrap(), Appended::Done);
    assert_eq!(world.heads(), [first, ours.head].map(|head| head.to_string()));
}

#[test]
fn a_primary_that_came_back_alone_shows_no_batch_that_its_standby_never_had() {
    let Some(mut world) = World::start() else { return };
    let standby = world.postgres.start_standby(Standby::Synchronous);
    let mut node = world.node("one");
    node.order = node.order.with_limit(Duration::from_secs(2));
    let mut base = None;
    let first = node.write(&mut base, "first");
    standby.pause();
    assert!(node.append(&batch(base, "not replicated")).is_err());
    world.postgres.restart(PostgresEnd::Crash);
    // The primary shows it to everyone who asks.
    world.postgres.await_row("select count(*) from svc_batch", "2");
    let mut other = world.node("two");
    other.order = other.order.with_limit(Duration::from_secs(2));
    let unseen = other.batches_after(Some(first)).unwrap_err();
    assert!(matches!(unseen, SequenceError::Unavailable(_)), "{unseen:?}");
    standby.resume();
    other.order = other.order.with_limit(Duration::from_secs(60));
    assert_eq!(other.batches_after(Some(first)).unwrap().len(), 1);
}

#[test]
fn after_a_failover_the_node_goes_on_with_the_new_primary() {
    let Some(mut world) = World::start() else { return };
    let standby = world.postgres.start_standby(Standby::Synchronous);
    let (old, new) = (world.postgres.address(), standby.address());
    let url = format!("postgres://countersign@{old},{new}/countersign");
    let mut node = world.node_on("one", crate::support::database(&url));
    node.order = node.order.with_limit(Duration::from_secs(30));
    let mut base = None;
    let mut heads = vec![node.write(&mut base, "before").to_string()];
    world.postgres.stop(PostgresEnd::Crash);
    let writer = std::thread::spawn(move || node.write(&mut base, "after"));
    standby.promote();
    heads.push(writer.join().unwrap().to_string());
    assert_eq!(standby.sql("select encode(head, 'hex') from svc_batch order by seq"), heads.join("\n"));
}
