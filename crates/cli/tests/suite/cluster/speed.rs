//! What nodes cost, in one run: a server on its own disk, one node, three nodes. It prints the figures when it is asked to, and asserts
//! only that everything is signed:
//! `COUNTERSIGN_RELEASES=50 cargo test --release -p countersign --test suite cluster::speed -- --nocapture`.

use countersign_testing::postgres::Postgres;

use super::{load::Load, nodes::Cluster};
use crate::support::World;

#[test]
fn nodes_sign_beside_a_server_on_its_own() {
    let asked = std::env::var("COUNTERSIGN_RELEASES").ok().and_then(|count| count.parse().ok());
    let Some(releases) = asked else { return };
    let world = World::start();
    let alone = Load::prepare_releases(&world, releases).measure(&[world.server.address()]);
    println!("a server on its own disk: {alone:.0} signatures a second");
    drop(world);
    for nodes in [1, 3] {
        // As an operator runs it: it syncs.
        let Some(postgres) = Postgres::start() else { return };
        // A proxy would take its own share of the processors.
        let url = postgres.url();
        let cluster = Cluster::start_as(postgres, nodes, |launch| launch.env("COUNTERSIGN_DATABASE", &url));
        let load = Load::prepare_releases(&cluster.world, releases);
        let shared = load.measure(&cluster.addresses());
        println!("{nodes} on PostgreSQL: {shared:.0} a second, {:.2} of that", shared / alone);
        load.check_cluster(&cluster);
    }
}
