//! A server moves into a database, operators look at the nodes, and others follow or are told of what they do.

use countersign_testing::postgres::{Postgres, PostgresOptions};
use serde_json::Value;
use tempfile::TempDir;

use super::nodes::{Cluster, await_that, read};
use crate::support::mirrors::{await_tip, tip_of};
use crate::support::receiver::{Manner, Receiver};
use crate::support::{Person, Request, SignersFile, TestServer, World};
use crate::support::{past::past, rewriting::import, server::Launch, webhooks::webhook};

fn postgres() -> Option<Postgres> {
    Postgres::start_with(PostgresOptions {
        skips_fsync: true,
        needs_password: true,
        ..PostgresOptions::default()
    })
}

fn admin(postgres: &Postgres, command: &str, server: &TestServer) -> Launch {
    server.admin(&["cluster", command, "--json"]).env("COUNTERSIGN_DATABASE", &postgres.url())
}

#[track_caller]
fn answer(launch: &Launch) -> Value {
    let output = launch.output();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("a JSON answer")
}

fn start_node(server: &mut TestServer, postgres: &Postgres) {
    let url = postgres.url();
    server.change_launch(|dir| Launch::serve(dir).arg("--dev").env("COUNTERSIGN_DATABASE", &url));
    server.start_again();
}

#[test]
fn a_stopped_server_moves_into_an_empty_database_and_nowhere_else() {
    let Some(postgres) = postgres() else { return };
    let alice = Person::named("alice");
    let mut world = World::start();
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    let running = admin(&postgres, "init", &world.server).output();
    assert!(!running.status.success(), "a running server cannot move");

    // Started on an empty database, it fills nothing unasked, and goes on reading.
    world.server.stop();
    start_node(&mut world.server, &postgres);
    await_that("the way in is told", || {
        let reply = world.server.get("/readyz");
        reply.status == 503 && reply.text().contains("admin cluster init")
    });
    read(&world.server, &index);
    let signed = alice.sign(Request::get(format!("/v1/signatures/{index}")));
    assert_eq!(world.server.send(&signed).status, 503);
    assert_eq!(postgres.sql("select count(*) from svc_batch"), "0");
    world.server.stop();

    let tip = tip_of(&world.server);
    assert_eq!(answer(&admin(&postgres, "init", &world.server))["commit"].as_str(), tip.as_deref());
    let again = admin(&postgres, "init", &world.server).output();
    assert!(String::from_utf8_lossy(&again.stdout).contains("not empty"), "{again:?}");

    start_node(&mut world.server, &postgres);
    let second =
        TestServer::start_with(|launch| launch.arg("--dev").env("COUNTERSIGN_DATABASE", &postgres.url()));
    await_that("both nodes are ready", || {
        [&world.server, &second].iter().all(|node| node.get("/readyz").status == 200)
    });
    world.add_signed_release("acme/app/v2", &[&alice]);
    let tip = tip_of(&world.server).expect("commits");
    await_tip(&second, &tip);
    let status = answer(&admin(&postgres, "status", &world.server));
    assert_eq!(status["newest"]["commit"], tip.as_str());
    assert_eq!(status["nodes"].as_array().map(Vec::len), Some(2), "{status}");
}

#[test]
fn a_node_replays_everything_that_a_server_does() {
    let Some(postgres) = postgres() else { return };
    let mut first = TestServer::prepare(|launch| launch);
    import(&first.repository(), &past().commits);
    answer(&admin(&postgres, "init", &first));
    start_node(&mut first, &postgres);
    let second =
        TestServer::start_with(|launch| launch.arg("--dev").env("COUNTERSIGN_DATABASE", &postgres.url()));
    await_tip(&second, &tip_of(&first).expect("commits"));
}

#[test]
fn no_server_with_a_dropped_statement_moves_and_no_node_takes_it_from_the_database() {
    let Some(postgres) = postgres() else { return };
    let lie = past().with_a_dropped_difference();
    let [mut liar, honest] = [(); 2].map(|()| TestServer::prepare(|launch| launch.arg("--dev")));
    let ids = import(&liar.repository(), &lie);
    let [.., base, head] = ids.as_slice() else { panic!("two commits") };
    let refused = admin(&postgres, "init", &liar).output();
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(
        !refused.status.success() && said.contains(&format!("the commit {head} breaks the rules")),
        "{said}"
    );
    import(&honest.repository(), &lie[..lie.len() - 1]);
    assert_eq!(answer(&admin(&postgres, "init", &honest))["commit"], base.as_str());
    liar.start_again();
    let body: String = liar
        .get(&format!("/v1/journal?after={base}"))
        .body
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    postgres.sql(&format!(
        "insert into svc_batch (seq, id, node, base, head, commits, body) select max(seq) + 1, gen_random_uuid(), 'liar', \
         decode('{base}', 'hex'), decode('{head}', 'hex'), 1, decode('{body}', 'hex') from svc_batch"
    ));
    let node =
        TestServer::start_with(|launch| launch.arg("--dev").env("COUNTERSIGN_DATABASE", &postgres.url()));
    node.await_log("a batch breaks the rules: this node passes over it", 1);
    assert_eq!(tip_of(&node).as_ref(), Some(base));
}

#[test]
fn a_server_of_another_repository_stops_at_a_database_that_is_in_use() {
    let Some(cluster) = Cluster::start(1) else { return };
    let alice = Person::named("alice");
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let mut other = World::start();
    other.activate("acme/other", &SignersFile::of(1, &[&alice]), &[&alice]);
    let index = other.add_signed_release("acme/other/v1", &[&alice]);
    other.server.stop();
    start_node(&mut other.server, &cluster.postgres);
    await_that("it says that the histories differ", || {
        let reply = other.server.get("/readyz");
        reply.status == 503 && reply.text().contains("another commit")
    });
    read(&other.server, &index);
    assert_eq!(cluster.node(0).get("/readyz").status, 200);
}

#[test]
fn one_node_delivers_each_event_and_another_goes_on_when_it_dies() {
    let Some(postgres) = postgres() else { return };
    let (receiver, dir) = (Receiver::start(Manner::Accept), TempDir::new().expect("a temporary directory"));
    let config = dir.path().join("countersign.toml");
    std::fs::write(&config, webhook("ci", &receiver, "")).expect("a writable directory");
    let config = config.to_str().expect("a plain name");
    let adapt = |launch: Launch| {
        launch.args(["--dev", "--config", config]).env("COUNTERSIGN_DATABASE", &postgres.url())
    };
    let mut world = World::start_with(|launch, _| adapt(launch));
    let mut second = TestServer::start_with(adapt);
    let alice = Person::named("alice");
    await_that("both nodes are ready", || {
        [&world.server, &second].iter().all(|node| node.get("/readyz").status == 200)
    });
    await_that("the webhook has begun", || postgres.sql("select count(commit) from svc_webhook") == "1");
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    world.add_signed_release("acme/app/v1", &[&alice]);
    let events = |node: &TestServer| {
        let head = node.get("/v1/journal").header("x-svc-commit").expect("a commit").to_owned();
        await_that("everything was delivered", || {
            postgres.sql("select encode(commit, 'hex') from svc_webhook") == head
        });
        receiver.accepted().iter().map(|delivery| delivery.id().to_owned()).collect::<Vec<_>>()
    };
    let mut delivered = events(&world.server);
    let count = delivered.len();
    delivered.sort();
    delivered.dedup();
    assert_eq!(delivered.len(), count, "each event once");
    assert!(count >= 4, "{delivered:?}");
    // Whichever of them delivered.
    second.kill9();
    world.add_signed_release("acme/app/v2", &[&alice]);
    assert!(events(&world.server).len() > count);
    second.start_again();
    world.server.kill9();
    await_that("the other one is ready", || second.get("/readyz").status == 200);
    world.server = second;
    world.add_signed_release("acme/app/v3", &[&alice]);
    let before = receiver.accepted().len();
    assert!(events(&world.server).len() >= before.min(count + 4));
}
