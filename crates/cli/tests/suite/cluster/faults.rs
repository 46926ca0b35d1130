//! Three nodes, 64 clients and random targets, while nodes, connections and the database fail.

use std::time::Duration;

use countersign_testing::postgres::PostgresEnd;

use super::{load::Acknowledged, load::Load, nodes::Cluster};
use crate::support::World;

/// How long a fault lasts at most while the load stands still.
const MOMENT: Duration = Duration::from_millis(700);

/// A load on three nodes with these faults. At the end each key counts once, and all nodes agree.
#[track_caller]
fn check_with(faults: impl FnOnce(&mut Cluster, &Acknowledged)) {
    let Some(mut cluster) = Cluster::start(3) else { return };
    let load = Load::prepare(&cluster.world);
    load.run(&cluster.addresses(), |acknowledged| {
        acknowledged.await_more(10, MOMENT);
        faults(&mut cluster, acknowledged);
    });
    load.check_cluster(&cluster);
}

/// Shows that the load and its checks are right about a server that they are made for.
#[test]
fn one_server_without_a_database_is_linearizable() {
    let world = World::start();
    let load = Load::prepare(&world);
    load.run(&[world.server.address(); 3], |_| {});
    load.check_signatures(&world.server);
}

#[test]
#[should_panic(expected = "the calls are not linearizable")]
fn two_servers_that_share_nothing_are_found_out() {
    let world = World::start();
    let load = Load::prepare(&world);
    let other = world.server.clone_mirror();
    load.run(&[world.server.address(), other.address()], |_| {});
}

#[test]
fn nodes_that_are_killed_and_paused_lose_nothing_repeat_nothing_and_do_no_harm() {
    check_with(|cluster, acknowledged| {
        for node in [0, 1, 2, 1] {
            cluster.node_mut(node).crash_and_restart();
            acknowledged.await_more(15, MOMENT);
        }
        for node in [0, 1, 2] {
            cluster.node(node).signal("STOP");
            acknowledged.await_more(25, MOMENT);
            cluster.node(node).signal("CONT");
            acknowledged.await_more(5, MOMENT);
        }
    });
}

#[test]
fn nodes_that_are_cut_off_from_the_database_come_back_by_themselves() {
    check_with(|cluster, acknowledged| {
        // Slow for one of them, which keeps no client waiting.
        cluster.ways[1].delay(Duration::from_millis(30));
        acknowledged.await_more(40, Duration::from_secs(5));
        cluster.ways[1].restore();
        for node in [0, 1, 2] {
            cluster.cut_off(node);
            acknowledged.await_more(15, MOMENT);
            cluster.ways[node].restore();
        }
        // Connections that stay open and say nothing are harder to notice than closed ones.
        for node in [2, 1] {
            cluster.ways[node].blackhole();
            acknowledged.await_more(15, MOMENT);
            cluster.ways[node].restore();
            cluster.ways[node].cut();
        }
    });
}

#[test]
fn a_database_that_crashes_or_stands_still_loses_nothing() {
    check_with(|cluster, acknowledged| {
        for _ in 0..2 {
            cluster.postgres.restart(PostgresEnd::Crash);
            acknowledged.await_more(25, MOMENT);
            cluster.postgres.pause();
            acknowledged.await_more(1_000, MOMENT);
            cluster.postgres.resume();
            acknowledged.await_more(25, MOMENT);
        }
    });
}
