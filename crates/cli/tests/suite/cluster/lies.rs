//! A database that lies: a node stops following, says at which commit, and goes on serving what it has.

use super::nodes::{Cluster, await_that, read};
use crate::support::{Git, Request, SignersFile, TestServer, World, alice};

/// Three batches of one commit each; what the database makes of them; how many of them a new node accepts.
#[test]
fn a_node_stops_before_a_row_that_the_database_made_up() {
    let Some(cluster) = Cluster::start(1) else { return };
    let alice = alice();
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let known = cluster.world.add_signed_release("acme/app/v0", &[&alice]);
    let mut heads = vec![cluster.served(0)];
    for n in 1..=3 {
        cluster.world.add_release(&alice, &format!("acme/app/v{n}"));
        heads.push(cluster.served(0));
    }
    let first: usize = cluster.postgres.sql("select max(seq) - 2 from svc_batch").parse().unwrap();
    cluster.postgres.sql("create table kept as select * from svc_batch");
    let other = World::start();
    other.register(&alice, "acme/other", &SignersFile::of(1, &[&alice])).ok();
    let foreign: String =
        other.server.get("/v1/journal").body.iter().map(|byte| format!("{byte:02x}")).collect();
    let foreign = format!("update svc_batch set body = decode('{foreign}', 'hex') where seq = FIRST + 1");
    for (name, tamper, accepted) in [
        (
            "changed",
            "update svc_batch set body = set_byte(body, length(body) - 20, 88) where seq = FIRST + 1",
            1,
        ),
        (
            "reordered",
            "update svc_batch as one set body = other.body, base = other.base, head = other.head \
             from svc_batch as other where (one.seq, other.seq) in ((FIRST, FIRST + 1), (FIRST + 1, FIRST))",
            0,
        ),
        (
            "repeated",
            "update svc_batch set body = (select body from svc_batch where seq = FIRST - 1) where seq = FIRST + 2",
            2,
        ),
        ("emptied", "update svc_batch set body = '' where seq = FIRST + 1", 1),
        ("another repository's", &foreign, 1),
    ] {
        cluster.postgres.sql(&tamper.replace("FIRST", &first.to_string()));
        let url = cluster.postgres.url();
        let node = TestServer::start_with(|launch| launch.arg("--dev").env("COUNTERSIGN_DATABASE", &url));
        let told = || node.get("/readyz");
        await_that(name, || told().status == 503 && heads.iter().any(|head| told().text().contains(head)));
        let git = Git::at(node.repository());
        assert_eq!(git.run(&["rev-parse", "main"]), heads[accepted], "{name}");
        read(&node, &known);
        assert_eq!(node.get("/").status, 200, "{name}");
        let signed = alice.sign(Request::get("/v1/pending_signatures"));
        assert_eq!(node.send(&signed).status, 503, "{name}");
        git.assert_sound();
        drop(node);
        cluster.postgres.sql(
            "update svc_batch set body = kept.body, base = kept.base, head = kept.head from kept \
             where svc_batch.seq = kept.seq",
        );
    }
}

#[test]
fn a_row_that_was_removed_stops_a_node_before_it_until_a_node_gives_it_back() {
    let Some(mut cluster) = Cluster::start(2) else { return };
    let alice = alice();
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    cluster.check_at_rest();
    cluster.cut_off(1);
    for n in 1..=3 {
        cluster.world.add_release(&alice, &format!("acme/app/v{n}"));
    }
    cluster.node_mut(0).stop();
    cluster.postgres.sql("delete from svc_batch where seq = (select max(seq) - 1 from svc_batch)");
    cluster.ways[1].restore();
    let told = || cluster.node(1).get("/readyz");
    await_that("removed", || told().status == 503 && told().text().contains("is missing"));
    assert_eq!(cluster.get_as(1, &alice, "/v1/pending_signatures").status, 503);
    cluster.git(1).assert_sound();
    cluster.node_mut(0).start_again();
    cluster.check_at_rest();
}
