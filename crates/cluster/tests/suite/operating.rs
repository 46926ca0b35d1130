//! Webhooks by one node, the operator's view, and moving into a cluster.

use std::{convert::Infallible, io};

use countersign_cluster::admin::{InitError, init, read_status};
use countersign_cluster::{schema::FORMAT, schema::SchemaError, webhooks::WebhookProgress};
use countersign_store::{machine::clock::Clock, sequence::Sequencer as _};
use countersign_testing::{postgres::Postgres, proxy::LossMoment, proxy::LostAnswer, proxy::Proxy};

use crate::support::{FAST, World, batch, database, new_id, runtime};

#[test]
fn one_node_at_a_time_delivers_for_a_webhook() {
    let Some(world) = World::start() else { return };
    let proxy = Proxy::for_postgres(world.postgres.address());
    let mut one = WebhookProgress::new(world.database_at(proxy.address()), "chat");
    let mut two = WebhookProgress::new(world.database(), "chat");
    let mut other = WebhookProgress::new(world.database(), "another");
    let first = new_id();
    world.runtime.block_on(async {
        let claim = one.claim().await.unwrap().expect("it is free");
        assert_eq!(claim.commit, None);
        assert!(two.claim().await.unwrap().is_none());
        assert!(other.claim().await.unwrap().is_some());
        claim.finish(first).await.unwrap();

        let claim = two.claim().await.unwrap().expect("it is free again");
        assert_eq!(claim.commit, Some(first));
        assert!(one.claim().await.unwrap().is_none());
        claim.release().await.unwrap();

        // A claim ends with its connection, and what was not noted is not done.
        let claim = one.claim().await.unwrap().expect("it is free again");
        proxy.cut();
        assert!(claim.finish(new_id()).await.is_err());
    });
    world.postgres.await_row("select count(*) from pg_locks where relation = 'svc_webhook'::regclass", "0");
    world.runtime.block_on(async {
        let claim = two.claim().await.unwrap().expect("it is free again");
        assert_eq!(claim.commit, Some(first));
        drop(claim);
        assert!(one.claim().await.is_ok());
    });
}

#[test]
fn the_status_lists_nodes_with_their_lag() {
    let Some(world) = World::start() else { return };
    let read = || world.runtime.block_on(read_status(&world.database())).unwrap();
    let empty = read();
    assert_eq!((empty.newest, empty.nodes.len(), empty.format), (None, 0, FORMAT));
    let mut node = world.node("one");
    let mut base = None;
    for _ in 0..3 {
        node.write(&mut base, "x");
    }
    world
        .postgres
        .sql("insert into svc_node values ('slow', 1, null, '0.1', now(), now() - interval '1 minute')");
    // It had everything when it was seen. Two batches came since.
    let seen = "(select at from svc_batch where seq = 1)";
    world.postgres.sql(&format!("insert into svc_node values ('even', 1, null, '0.1', now(), {seen})"));
    // Seen more than a moment after the batches.
    world
        .postgres
        .sql("insert into svc_node values ('late', 1, null, '0.1', now(), now() + interval '2 seconds')");
    node.order.forget_nonces().unwrap();
    let status = read();
    let newest = status.newest.unwrap();
    assert_eq!((newest.seq, Some(newest.commit)), (3, base));
    let slow = status.nodes.iter().find(|node| node.name == "slow").unwrap();
    assert_eq!((slow.lag, slow.is_here()), (2, false));
    let lag_of = |name| status.nodes.iter().find(|node| node.name == name).map(|node| node.lag);
    assert_eq!((lag_of("even"), lag_of("late")), (Some(0), Some(2)));
    assert!((59..120).contains(&slow.seen_ago.as_secs()), "{slow:?}");
    assert!(status.nonce_floor.is_some());
}

#[test]
fn a_stopped_server_moves_into_an_empty_database_once() {
    let Some(postgres) = Postgres::start_with(FAST) else { return };
    let proxy = Proxy::for_postgres(postgres.address());
    let (runtime, now) = (runtime(), Clock::system().now());
    let first = batch(None, "first");
    let second = batch(Some(first.head), "second");
    let batches = [first, second];
    let good = || batches.clone().into_iter().map(Ok::<_, Infallible>);
    let database = database(&postgres.url_at(proxy.address()));
    let count = || postgres.sql("select count(*) from svc_batch");

    let status = runtime.block_on(read_status(&database));
    assert!(matches!(status, Err(SchemaError::Absent)), "{status:?}");
    // The source fails in the middle, the connection breaks in the middle, and before the end.
    let failing = good().map(|batch| batch.map_err(|never| match never {})).take(1);
    let failing = failing.chain([Err(io::Error::other("the disk"))]);
    let error = runtime.block_on(init(&database, "one", now, failing)).unwrap_err();
    assert!(matches!(error, InitError::Source(_)), "{error:?}");
    assert_eq!(count(), "0");
    for (statement, nth) in [("insert into svc_batch", 2), ("update svc_repository", 1)] {
        proxy.lose(LostAnswer { statement, nth, moment: LossMoment::AfterEffect });
        let error = runtime.block_on(init(&database, "one", now, good())).unwrap_err();
        assert!(matches!(error, InitError::Database(_)), "{error:?}");
        postgres.await_row("select count(*) from pg_locks where relation = 'svc_batch'::regclass", "0");
        assert_eq!(count(), "0");
    }
    let broken = batches.iter().rev().cloned().map(Ok::<_, Infallible>);
    let error = runtime.block_on(init(&database, "one", now, broken)).unwrap_err();
    assert!(matches!(error, InitError::Broken { seq: 1 }), "{error:?}");

    assert_eq!(runtime.block_on(init(&database, "one", now, good())).unwrap(), 2);
    let error = runtime.block_on(init(&database, "one", now, good())).unwrap_err();
    assert!(matches!(error, InitError::NotEmpty { newest: 2 }), "{error:?}");
    assert!(error.to_string().contains("not empty"), "{error}");

    let world = World { runtime, postgres };
    let mut node = world.node("one");
    assert_eq!(node.batches_after(None).unwrap(), batches);
    // The nonces of the server from before are not known here.
    let floor = "select nonce_floor is not null from svc_repository";
    assert_eq!(world.postgres.sql(floor), "t");
}
