//! Hearing of other nodes, being there, and forgetting nonces.

use std::{sync::Arc, time::Duration, time::Instant};

use countersign_cluster::{news::NewsReader, node::Reachability};
use countersign_store::{machine::clock::Clock, sequence::SequenceError};
use countersign_testing::{await_until, postgres::PostgresEnd, proxy::Proxy};
use tokio::time::timeout;

use crate::support::{Node, World};

fn follow(world: &World, node: &Node, proxy: &Proxy) -> NewsReader {
    let database = world.database_at(proxy.address());
    NewsReader::start(
        world.runtime.handle(),
        database,
        Arc::clone(&node.state),
        "1.2.3",
        Arc::default(),
        Clock::system(),
    )
}

/// Follows until this node has published as much as there is.
fn catch_up(world: &World, node: &mut Node, seq: i64) {
    let end = Instant::now() + Duration::from_secs(30);
    while node.state.applied().seq < seq {
        let news =
            world.runtime.block_on(async { timeout(Duration::from_secs(10), node.state.await_news()).await });
        news.expect("news");
        node.catch_up(node.state.applied().head);
        assert!(Instant::now() < end, "at {:?}", node.state.applied());
    }
}

#[test]
fn a_node_hears_of_the_others_and_is_listed() {
    let Some(world) = World::start() else { return };
    let proxy = Proxy::for_postgres(world.postgres.address());
    let (mut one, mut two) = (world.node("one"), world.node("two"));
    assert!(matches!(one.state.reachability(), Reachability::Unasked));
    let _following = follow(&world, &two, &proxy);
    let mut base = None;
    for seq in 1..=5 {
        one.write(&mut base, "x");
        catch_up(&world, &mut two, seq);
    }
    assert_eq!(two.state.applied().head, base);
    assert!(matches!(one.state.reachability(), Reachability::Since(_)) && one.state.latency.sum() > 0);
    assert_eq!(two.state.lag(), 0);
    assert_eq!(two.state.lag_time(Instant::now()), Duration::ZERO);
    let listed = "select name, position, encode(commit, 'hex'), version from svc_node where name = 'two'";
    world.postgres.await_row(listed, &format!("two|5|{}|1.2.3", base.unwrap()));
}

#[test]
fn a_follower_comes_back_after_every_loss() {
    let Some(mut world) = World::start() else { return };
    let proxy = Proxy::for_postgres(world.postgres.address());
    let (mut one, mut two) = (world.node("one"), world.node("two"));
    let _following = follow(&world, &two, &proxy);
    let mut base = None;
    one.write(&mut base, "before");
    catch_up(&world, &mut two, 1);
    proxy.cut();
    one.write(&mut base, "after a cut");
    catch_up(&world, &mut two, 2);
    world.postgres.stop(PostgresEnd::Crash);
    await_until("a loss", || matches!(two.state.reachability(), Reachability::NotSince { .. }));
    world.postgres.start_again();
    one.write(&mut base, "after a crash");
    catch_up(&world, &mut two, 3);
    assert!(matches!(two.state.reachability(), Reachability::Since(_)));
    // Nothing comes through, and nothing breaks: only asking helps.
    proxy.blackhole();
    one.write(&mut base, "in silence");
    proxy.restore();
    catch_up(&world, &mut two, 4);
}

#[test]
fn a_database_that_lost_batches_wakes_the_node() {
    let Some(world) = World::start() else { return };
    let proxy = Proxy::for_postgres(world.postgres.address());
    let (mut one, mut two) = (world.node("one"), world.node("two"));
    let _following = follow(&world, &two, &proxy);
    let mut base = None;
    one.write(&mut base, "1");
    one.write(&mut base, "2");
    catch_up(&world, &mut two, 2);
    world.postgres.sql("delete from svc_batch where seq = 2");
    let end = Instant::now() + Duration::from_secs(30);
    // What it had heard before may wake it once more.
    while two.state.newest() != 1 {
        let news = async { timeout(Duration::from_secs(10), two.state.await_news()).await };
        world.runtime.block_on(news).expect("news");
        assert!(Instant::now() < end);
    }
    let lost = two.batches_after(base).unwrap_err();
    assert!(matches!(lost, SequenceError::Unknown(_)), "{lost:?}");
}

#[test]
fn a_node_notices_another_batch_with_the_number_of_its_own() {
    let Some(world) = World::start() else { return };
    let proxy = Proxy::for_postgres(world.postgres.address());
    let (mut one, mut two) = (world.node("one"), world.node("two"));
    let (mut base, mut other) = (None, None);
    one.write(&mut base, "1");
    two.catch_up(None);
    other = other.or(base);
    one.write(&mut base, "2 of one");
    let _following = follow(&world, &one, &proxy);
    world.postgres.sql("delete from svc_batch where seq = 2");
    two.write(&mut other, "2 of two");
    // The number of the newest batch is the same as before.
    let news = async { timeout(Duration::from_secs(30), one.state.await_news()).await };
    world.runtime.block_on(news).expect("news");
    let lost = one.batches_after(base).unwrap_err();
    assert!(matches!(lost, SequenceError::Unknown(_)), "{lost:?}");
}

#[test]
fn expired_nonces_are_forgotten_after_the_mark_has_moved() {
    let Some(world) = World::start() else { return };
    let proxy = Proxy::for_postgres(world.postgres.address());
    let node = world.node("one");
    world.postgres.sql(
        "insert into svc_nonce select gen_random_uuid(), now() - interval '1 hour' from generate_series(1, 2500);
        insert into svc_nonce values (gen_random_uuid(), now() - interval '11 minutes');
        insert into svc_nonce values (gen_random_uuid(), now() - interval '9 minutes');
        insert into svc_nonce values (gen_random_uuid(), now() + interval '9 minutes')",
    );
    let expired = world
        .postgres
        .sql("select max(expires) from svc_nonce where expires < now() - interval '10 minutes'");
    let _following = follow(&world, &node, &proxy);
    world.postgres.await_row("select nonce_purged from svc_repository", &expired);
    // Statements that did not see the mark may still be under way.
    assert_eq!(world.postgres.sql("select count(*) from svc_nonce"), "2503");
    world.postgres.await_row("select count(*) from svc_nonce", "2");
    assert_eq!(world.postgres.sql("select nonce_purged from svc_repository"), expired);
}
