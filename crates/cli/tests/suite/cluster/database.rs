//! A node without its database: reads go on, the rest says so, and it comes back by itself.

use std::time::{Duration, Instant};

use countersign_testing::assert_mentions;
use countersign_testing::postgres::{Postgres, PostgresEnd, PostgresOptions};

use super::nodes::{Cluster, await_that, read};
use crate::support::{
    Git, Launch, Person, Reply, Request, SignersFile, TestServer, client::text, witnesses::LogSetup,
};

struct Scene {
    cluster: Cluster,
    alice: Person,
    index: String,
}

impl Scene {
    fn start() -> Option<Self> {
        let cluster = Cluster::start(2)?;
        let alice = Person::named("alice");
        cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
        let index = cluster.world.add_release(&alice, "acme/app/v1");
        cluster.check_at_rest();
        Some(Self { cluster, alice, index })
    }

    /// What a node answers that cannot reach the database.
    #[track_caller]
    fn check_without_database(&self, node: usize) {
        let server = self.cluster.node(node);
        let status = format!("/v1/signatures/{}", self.index);
        let unavailable = |reply: Reply| {
            assert!(!reply.error(503).is_empty());
            let seconds = reply.header("retry-after").expect("when to try again");
            assert!(seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0), "{seconds}");
        };
        unavailable(self.cluster.get_as(node, &self.alice, &status));
        unavailable(self.cluster.get_as(node, &self.alice, "/v1/pending_signatures"));
        read(server, &self.index);
        for page in ["/", "/healthz"] {
            assert_eq!(server.get(page).status, 200, "{page}");
        }
        await_that("/readyz says that the database is gone", || {
            let reply = server.get("/readyz");
            reply.status == 503 && reply.text().contains("database")
        });
    }

    #[track_caller]
    fn check_with_database(&self) {
        self.cluster.await_ready();
        // A connection can turn out to be dead with the first request on it.
        for node in [0, 1] {
            await_that("signed requests are answered", || {
                self.cluster.get_as(node, &self.alice, "/v1/pending_signatures").status == 200
            });
        }
    }
}

#[test]
fn nodes_go_on_without_the_database_and_come_back_by_themselves() {
    let Some(mut scene) = Scene::start() else { return };
    for end in [PostgresEnd::Fast, PostgresEnd::Crash] {
        scene.cluster.postgres.stop(end);
        for node in [0, 1] {
            scene.check_without_database(node);
        }
        scene.cluster.postgres.start_again();
        scene.check_with_database();
    }
    // One that says nothing is as good as none.
    scene.cluster.ways[1].blackhole();
    scene.check_without_database(1);
    scene.cluster.get_as(0, &scene.alice, "/v1/pending_signatures").ok();
    scene.cluster.ways[1].restore();
    scene.check_with_database();

    // A node that was away catches up before it answers those who sign in.
    scene.cluster.node_mut(1).kill9();
    scene.cluster.world.sign(&scene.alice, &scene.index).ok();
    for n in 2..20 {
        scene.cluster.world.add_signed_release(&format!("acme/app/v{n}"), &[&scene.alice]);
    }
    scene.cluster.node_mut(1).start_again();
    scene.cluster.await_ready();
    let status = scene.cluster.get_as(1, &scene.alice, &format!("/v1/signatures/{}", scene.index)).ok();
    assert_eq!(status["is_complete"], true);
    scene.cluster.check_at_rest();
}

#[test]
fn a_node_whose_database_is_gone_says_so_at_its_start_and_stops_at_once() {
    let Some(postgres) = Postgres::start_with(PostgresOptions { skips_fsync: true, ..Default::default() })
    else {
        return;
    };
    let log = LogSetup::default().prepare();
    let config = log.server.data_dir().with_extension("toml");
    let mut cluster = Cluster::start_as(postgres, 1, |launch| launch.args(["--config", text(&config)]));
    assert!(cluster.node(0).ready_line().starts_with("Countersign is ready on "));
    let stop = |cluster: &mut Cluster| {
        await_that("the node has noticed", || cluster.node(0).get("/readyz").status == 503);
        // A database that is gone for longer than a change of the primary takes.
        cluster.node(0).await_log("cannot be reached", 1);
        let asked = Instant::now();
        assert_eq!(cluster.node_mut(0).stop().code(), Some(0));
        assert!(asked.elapsed() < Duration::from_secs(4), "it took {:?}", asked.elapsed());
    };
    // One that says nothing, and one that is not there.
    cluster.ways[0].blackhole();
    stop(&mut cluster);
    cluster.cut_off(0);
    cluster.node_mut(0).start_again();
    let line = cluster.node(0).ready_line().to_owned();
    assert_mentions(
        &line,
        &["Countersign listens on http://", "not ready yet: the database cannot be reached"],
    );
    cluster.ways[0].restore();
    cluster.await_ready();
    cluster.node(0).await_output("Countersign is ready on ");
    cluster.postgres.stop(PostgresEnd::Crash);
    stop(&mut cluster);
}

#[test]
fn a_new_node_fills_itself_and_any_directory_serves_alone() {
    let Some(postgres) = Postgres::start_with(PostgresOptions { skips_fsync: true, ..Default::default() })
    else {
        return;
    };
    let alice = Person::named("alice");
    let mut cluster = Cluster::start_on(postgres, 1);
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let index = cluster.world.add_signed_release("acme/app/v1", &[&alice]);
    // The other way to name the database; it carries no password here.
    let url = cluster.postgres.url().replace(&format!(":{}", countersign_testing::postgres::PASSWORD), "");
    let mut second = TestServer::start_with(|launch| launch.args(["--dev", "--database", &url]));
    let head = |server: &TestServer| Git::at(server.repository()).run(&["rev-parse", "main"]);
    await_that("the new node has the release", || second.get(&format!("/v1/files/{index}")).status == 200);
    await_that("the new node has everything", || head(&second) == cluster.head(0));

    // The way out: any node's directory, without the database.
    assert_eq!(cluster.node_mut(0).stop().code(), Some(0));
    assert_eq!(second.stop().code(), Some(0));
    let alone = Launch::serve(&second.data_dir()).arg("--dev");
    let alone = TestServer::start_with(|_| alone);
    read(&alone, &index);
    let request = alice.sign(Request::get(format!("/v1/signatures/{index}")));
    assert_eq!(alone.send(&request).ok()["is_complete"], true);
}
