//! Nodes keep one log together (D88).

use std::cell::Cell;

use countersign_core::log::checkpoint::{Checkpoint, SignedCheckpoint};
use countersign_core::proof::bundle::Staple;
use countersign_testing::log_reader::{derive_leaves, root_of};
use countersign_testing::postgres::{Postgres, PostgresOptions};

use super::nodes::{Cluster, await_that, new_address};
use crate::support::client::text;
use crate::support::witnesses::{LogSetup, TestWitness, checkpoint_of, log_key_of};
use crate::support::{Person, SignersFile, TestServer};

fn newest(node: &TestServer) -> u64 {
    checkpoint_of(node).checkpoint().size
}

/// Every node shows one checkpoint of all commits, and makes staples.
fn check(cluster: &Cluster, index: &str) -> Checkpoint {
    cluster.await_rest();
    let size: u64 = cluster.git(0).run(&["rev-list", "--count", "main"]).trim().parse().unwrap();
    for node in 0..cluster.ways.len() {
        await_that("a checkpoint of all commits", || newest(cluster.node(node)) == size);
        await_that("a staple", || cluster.node(node).get(&format!("/v1/proof/{index}")).status == 200);
    }
    let checkpoint = checkpoint_of(cluster.node(0)).checkpoint().clone();
    let leaves = derive_leaves(&cluster.node(0).repository());
    assert_eq!((checkpoint.size, checkpoint.root), (leaves.len() as u64, root_of(&leaves)));
    checkpoint
}

#[test]
fn nodes_sign_one_log_and_go_on_without_each_other() {
    let options = PostgresOptions { skips_fsync: true, ..PostgresOptions::default() };
    let Some(postgres) = Postgres::start_with(options) else { return };
    // One key for all of them.
    let log = LogSetup::default().prepare();
    let config = log.server.data_dir().with_extension("toml");
    let mut cluster = Cluster::start_as(postgres, 2, |launch| launch.args(["--config", text(&config)]));
    let alice = Person::named("alice");
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let index = cluster.world.add_signed_release("acme/app/1.0", &[&alice]);
    let first = check(&cluster, &index);
    // The other node signs while the first is away, and the first goes on from there.
    cluster.node_mut(1).kill9();
    cluster.world.add_signed_release("acme/app/2.0", &[&alice]);
    await_that("a newer checkpoint", || newest(cluster.node(0)) > first.size);
    cluster.node_mut(1).start_again();
    cluster.await_ready();
    cluster.world.add_signed_release("acme/app/3.0", &[&alice]);
    let last = check(&cluster, &index);
    let kept = cluster.postgres.sql("select size from svc_checkpoint");
    assert_eq!(kept.trim(), last.size.to_string());
}

/// The witness replays what one node serves, and each node asks it for itself.
#[test]
fn each_node_proves_with_the_word_of_a_witness() {
    let options = PostgresOptions { skips_fsync: true, ..PostgresOptions::default() };
    let Some(postgres) = Postgres::start_with(options) else { return };
    let origin = new_address();
    let mut witness = TestWitness::prepare(origin, "one.example", &[]);
    let log = LogSetup::default().witnessed(&[&witness], &[]).prepare();
    let config = log.server.data_dir().with_extension("toml");
    let first = Cell::new(Some(origin));
    let mut cluster = Cluster::start_as(postgres, 2, |launch| {
        let launch = launch.args(["--config", text(&config)]);
        first.take().map_or(launch.clone(), |address| launch.at(address))
    });
    witness.server.start_again();
    let alice = Person::named("alice");
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let index = cluster.world.add_signed_release("acme/app/1.0", &[&alice]);
    let key = log_key_of(cluster.node(1));
    // A staple of the newest commit, which the witness has cosigned.
    let proves = |cluster: &Cluster, node: usize| {
        let newest = cluster.head(node);
        let reply = cluster.node(node).get(&format!("/v1/proof/{index}"));
        let staple = (reply.status == 200).then(|| Staple::parse(&reply.body).unwrap());
        staple.is_some_and(|staple| {
            let logs = std::slice::from_ref(&key);
            let signed = SignedCheckpoint::open(&staple.proof.note, logs, &[witness.key.clone()]).unwrap();
            staple.leaf.commit == newest && signed.cosignatures().count() == 1
        })
    };
    for node in 0..2 {
        await_that("a cosigned proof", || proves(&cluster, node));
    }
    // Either of them goes on without the other, as long as the witness can read the commits.
    cluster.node_mut(1).kill9();
    cluster.world.add_signed_release("acme/app/2.0", &[&alice]);
    await_that("a cosigned proof of the newest", || proves(&cluster, 0));
    cluster.node_mut(1).start_again();
    cluster.await_ready();
    cluster.world.add_signed_release("acme/app/3.0", &[&alice]);
    for node in 0..2 {
        await_that("a cosigned proof after the return", || proves(&cluster, node));
    }
    assert_eq!(witness.evidence(), [""; 0]);
}
