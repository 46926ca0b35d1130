//! The primary dies and its standby takes over.

use std::time::Duration;

use countersign_testing::postgres::{Postgres, PostgresEnd, PostgresOptions, Standby};

use super::{load::Load, nodes::Cluster, nodes::await_that};
use crate::support::{Person, SignersFile, world::checksums};

fn start(standby: Standby) -> Option<(Cluster, Postgres)> {
    let options = PostgresOptions { skips_fsync: true, ..PostgresOptions::default() };
    let primary = Postgres::start_with(options)?;
    let standby = primary.start_standby(standby);
    Some((Cluster::start_on(primary, 3), standby))
}

/// Switches to a new primary behind the same name.
fn move_to(cluster: &Cluster, standby: &Postgres) {
    for way in &cluster.ways {
        way.redirect(standby.address());
        way.cut();
    }
}

#[test]
fn a_synchronous_standby_takes_over_under_load_and_nothing_is_lost() {
    let Some((mut cluster, standby)) = start(Standby::Synchronous) else { return };
    let load = Load::prepare(&cluster.world);
    load.run(&cluster.addresses(), |acknowledged| {
        acknowledged.await_more(30, Duration::from_secs(2));
        cluster.postgres.stop(PostgresEnd::Crash);
        standby.promote();
        move_to(&cluster, &standby);
    });
    load.check_cluster(&cluster);
}

#[test]
fn nodes_give_back_the_rows_that_an_asynchronous_standby_has_lost() {
    let Some((mut cluster, mut standby)) = start(Standby::Asynchronous) else { return };
    let alice = Person::named("alice");
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let kept = cluster.postgres.sql("select max(seq) from svc_batch");
    standby.await_row("select max(seq) from svc_batch", &kept);
    standby.stop(PostgresEnd::Fast);
    let indexes = ["acme/app/v1", "acme/app/v2"].map(|dir| cluster.world.add_signed_release(dir, &[&alice]));
    cluster.check_at_rest();
    cluster.postgres.stop(PostgresEnd::Crash);
    standby.start_again();
    standby.promote();
    assert_eq!(standby.sql("select max(seq) from svc_batch"), kept, "the standby has lost rows");
    move_to(&cluster, &standby);

    cluster.await_ready();
    // Each node refuses what was signed before it saw the failover, so the first tries can be 401.
    let url = cluster.world.publish_checksums("acme/app/v3", &checksums("acme/app/v3"));
    await_that("changes are accepted", || {
        matches!(cluster.world.register_assets(&alice, &[&url]).status, 200 | 409)
    });
    cluster.check_at_rest();
    for index in indexes {
        await_that("the node shows what the standby had lost", || {
            let reply = cluster.get_as(2, &alice, &format!("/v1/signatures/{index}"));
            reply.status == 200 && reply.json()["is_complete"] == true
        });
    }
}
