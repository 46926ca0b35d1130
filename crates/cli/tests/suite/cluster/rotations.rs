//! Rotations that wait (D132): any node puts them into effect, once.

use std::cell::Cell;

use countersign_testing::{postgres::Postgres, postgres::PostgresOptions, postgres::ROLE, proxy::Proxy};
use serde_json::json;

use super::nodes::{Cluster, await_that};
use crate::support::{
    Person, Reply, Request, SignersFile, TestServer, days_ago, fsck::fsck, machine_clock::MachineClock,
};

const DELAY: i64 = 3_600;

fn team(days: i64) -> SignersFile {
    SignersFile::dated(days_ago(days))
        .artifact(1, &[&Person::named("alice")])
        .master(1, &[&Person::named("mia")])
        .with("rotation_delay_hours", json!(1))
}

/// Two nodes, each with a clock of its own, and signers that wait.
fn waiting() -> Option<(Cluster, [MachineClock; 2])> {
    let clocks = [MachineClock::new()?, MachineClock::new()?];
    let options = PostgresOptions { skips_fsync: true, needs_password: true, ..PostgresOptions::default() };
    let postgres = Postgres::start_with(options)?;
    let started = Cell::new(0);
    let cluster = Cluster::start_as(postgres, 2, |launch| {
        let node = started.replace(started.get() + 1);
        clocks[node].give_to(launch)
    });
    let alice = Person::named("alice");
    cluster.world.activate("acme/app", &team(10), &[&alice, &Person::named("mia")]);
    cluster.world.propose(&alice, "acme/app", &team(5)).ok();
    let agreed = cluster.world.sign(&alice, &cluster.world.pending_path("acme/app")).ok();
    assert!(agreed["waits_until"].is_string(), "{agreed}");
    // An hour is enough for each node to hear of it.
    let agreement = format!("/v1/files/{}.agreed.json", cluster.world.pending_path("acme/app"));
    await_that("both nodes know what waits", || cluster.node(1).get(&agreement).status == 200);
    Some((cluster, clocks))
}

/// The clock of the database shows a later time from now on.
fn set_database(cluster: &Cluster, seconds: i64) {
    cluster.postgres.sql(&format!(
        "create or replace function public.clock_timestamp() returns timestamptz language sql as \
             $$select pg_catalog.clock_timestamp() + interval '{seconds} seconds'$$; \
         alter role {ROLE} set search_path = public, pg_catalog"
    ));
    // The setting counts for new connections.
    cluster.ways.iter().for_each(Proxy::cut);
}

/// A node that was told the time anew has compared its own clock with it.
fn await_clock(cluster: &Cluster, node: usize) {
    await_that("the clock of the node is right", || cluster.node(node).get("/readyz").status == 200);
}

fn signers(cluster: &Cluster, node: &TestServer) -> Reply {
    node.get(&format!("/v1/get_signers/{}", cluster.world.id("acme/app")))
}

fn activations(cluster: &Cluster) -> usize {
    let subjects = cluster.git(0).run(&["log", "--format=%s", "main"]);
    subjects.lines().filter(|subject| subject.starts_with("Activate")).count()
}

#[test]
fn the_node_whose_clock_is_first_does_it_and_the_others_follow() {
    let Some((cluster, clocks)) = waiting() else { return };
    set_database(&cluster, DELAY + 60);
    clocks[1].set(DELAY + 60);
    await_clock(&cluster, 1);
    assert_eq!(signers(&cluster, cluster.node(1)).body, team(5).bytes());
    await_that("the other node follows", || signers(&cluster, cluster.node(0)).body == team(5).bytes());
    clocks[0].set(DELAY + 60);
    await_clock(&cluster, 0);
    assert_eq!(signers(&cluster, cluster.node(0)).body, team(5).bytes());
    cluster.check_at_rest();
    assert_eq!(activations(&cluster), 2, "of the first signers, and of these");
    for node in 0..2 {
        fsck(&cluster.node(node).data_dir(), &[]).is_clean();
    }
}

#[test]
fn nodes_that_try_at_the_same_time_make_one_commit() {
    let Some((cluster, clocks)) = waiting() else { return };
    set_database(&cluster, DELAY + 60);
    clocks.iter().for_each(|clock| clock.set(DELAY + 60));
    (0..2).for_each(|node| await_clock(&cluster, node));
    std::thread::scope(|scope| {
        for node in [0, 1, 0, 1, 0, 1] {
            let cluster = &cluster;
            scope.spawn(move || {
                assert_eq!(signers(cluster, cluster.node(node)).body, team(5).bytes(), "node {node}");
            });
        }
    });
    cluster.check_at_rest();
    assert_eq!(activations(&cluster), 2);
}

#[test]
fn a_node_whose_clock_is_behind_or_ahead_of_the_database_ends_no_delay() {
    let Some((cluster, clocks)) = waiting() else { return };
    let (alice, mia) = (Person::named("alice"), Person::named("mia"));
    cluster.world.propose(&alice, "acme/app", &team(4)).ok();
    clocks[1].set(-DELAY);
    let body = cluster.world.signature_body(&mia, &cluster.world.pending_path("acme/app"));
    let request = mia.sign(Request::post("/v1/signatures", &body));
    let refused = cluster.node(1).send(&request);
    assert!(matches!(refused.status, 401 | 503), "{}", refused.text());
    await_that("the node says so", || cluster.node(1).get("/readyz").status == 503);
    let refused = cluster.node(1).send(&mia.sign(Request::post("/v1/signatures", &body)));
    assert!(refused.error(503).contains("clock"));
    clocks[1].set(0);
    cluster.check_at_rest();
    for node in 0..2 {
        assert_eq!(signers(&cluster, cluster.node(node)).body, team(10).bytes(), "node {node}");
    }
    assert_eq!(activations(&cluster), 1);

    // Agreed anew. A node that is ahead of the database puts nothing in force.
    let agreed = cluster.world.sign(&alice, &cluster.world.pending_path("acme/app")).ok();
    assert!(agreed["waits_until"].is_string(), "{agreed}");
    cluster.await_rest();
    clocks[1].set(DELAY + 60);
    assert_eq!(signers(&cluster, cluster.node(1)).body, team(10).bytes());
    cluster.node(1).await_log("ahead of the database", 1);
    for node in 0..2 {
        assert_eq!(signers(&cluster, cluster.node(node)).body, team(10).bytes(), "node {node}");
    }
    assert_eq!(activations(&cluster), 1);
    // The node tries again each second.
    set_database(&cluster, DELAY + 60);
    await_that("it takes effect", || signers(&cluster, cluster.node(0)).body == team(4).bytes());
    clocks[0].set(DELAY + 60);
    cluster.check_at_rest();
    assert_eq!(activations(&cluster), 2);
}
