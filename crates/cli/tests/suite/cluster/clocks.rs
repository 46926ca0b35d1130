//! Nodes whose clocks are wrong, or jump between a decision and its commit (D194, D198).

use std::{cell::Cell, io::Write as _, process::Child, process::Stdio};

use countersign_testing::postgres::{Postgres, PostgresOptions};

use super::nodes::{Cluster, await_that};
use crate::support::people::{new_nonce, now, seconds_ago};
use crate::support::{Person, Reply, Request, SignersFile, machine_clock::MachineClock};

/// Nodes, each with a clock of its own, and a project with releases that collect signatures.
struct Scene {
    cluster: Cluster,
    clocks: Vec<MachineClock>,
    alice: Person,
    indexes: Vec<String>,
}

impl Scene {
    fn start(nodes: usize) -> Option<Self> {
        let clocks: Option<Vec<_>> = (0..nodes).map(|_| MachineClock::new()).collect();
        let clocks = clocks?;
        let options =
            PostgresOptions { skips_fsync: true, needs_password: true, ..PostgresOptions::default() };
        let postgres = Postgres::start_with(options)?;
        let started = Cell::new(0);
        let cluster = Cluster::start_as(postgres, nodes, |launch| {
            clocks[started.replace(started.get() + 1)].give_to(launch)
        });
        let alice = Person::named("alice");
        cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
        let release = |n: usize| cluster.world.add_release(&alice, &format!("acme/app/v{n}"));
        let indexes = (0..8).map(release).collect();
        cluster.check_at_rest();
        Some(Self { cluster, clocks, alice, indexes })
    }

    /// A request to sign this release, dated by the right clock.
    fn request(&self, index: usize) -> Request {
        let body = self.cluster.world.signature_body(&self.alice, &self.indexes[index]);
        self.alice.sign(Request::post("/v1/signatures", &body))
    }

    fn await_not_ready(&self, node: usize, words: &str) -> Reply {
        let told = || self.cluster.node(node).get("/readyz");
        await_that(words, || told().status == 503 && told().text().contains(words));
        told()
    }

    /// All commits were made at about this time, none before the one before it, and the rules give them.
    fn check_times(&self) {
        self.cluster.check_at_rest();
        let times = self.cluster.git(0).run(&["log", "--reverse", "--format=%ct", "main"]);
        let times: Vec<i64> = times.lines().map(|time| time.parse().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(*times.last().unwrap() <= now().unix_seconds() + 5, "{times:?}");
    }
}

/// A transaction that lets no node append.
struct HeldOrder(Child);

impl HeldOrder {
    fn hold(postgres: &Postgres) -> Self {
        let mut psql = postgres.psql().stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("psql");
        let lock = b"begin; lock table svc_batch in exclusive mode;\n";
        psql.stdin.as_mut().expect("piped").write_all(lock).expect("psql reads");
        let held = "select count(*) from pg_locks where relation = 'svc_batch'::regclass and mode = 'ExclusiveLock' and granted";
        await_that("the order is held", || postgres.sql(held) == "1");
        Self(psql)
    }

    fn release(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("psql ends");
    }
}

/// A change is on its way and another one waits while the clock of their node jumps. Three releases, and one more.
#[track_caller]
fn check_jump(scene: &Scene, seconds: i64, indexes: [usize; 4]) {
    let Scene { cluster, clocks, .. } = scene;
    let held = HeldOrder::hold(&cluster.postgres);
    let nonces = || cluster.postgres.sql("select count(*) from svc_nonce").parse::<usize>().unwrap();
    let statuses = std::thread::scope(|scope| {
        let mut sent = Vec::new();
        for index in &indexes[..3] {
            let (request, before) = (scene.request(*index), nonces());
            sent.push(scope.spawn(move || cluster.node(0).send(&request)));
            await_that("the request was accepted", || nonces() > before);
        }
        let waiting = "select count(*) from pg_stat_activity where wait_event = 'relation' and query like '%insert into svc_batch%'";
        await_that("a batch waits for the order", || cluster.postgres.sql(waiting) != "0");
        clocks[0].set(seconds);
        held.release();
        sent.into_iter().map(|sent| sent.join().unwrap()).collect::<Vec<_>>()
    });
    for reply in &statuses {
        assert!(matches!(reply.status, 200 | 503), "{}: {}", reply.status, reply.text());
    }
    scene.await_not_ready(0, "clock");
    // The others go on.
    for node in [1, 2] {
        assert_eq!(cluster.node(node).get("/readyz").status, 200);
    }
    assert_eq!(cluster.node(1).send(&scene.request(indexes[3])).status, 200);
    clocks[0].set(0);
    cluster.await_ready();
    for (index, reply) in indexes.iter().zip(&statuses) {
        let again = cluster.node(0).send(&scene.request(*index)).status;
        // After "not known", only the state tells.
        let is_as_told = match reply.status {
            200 => again == 409,
            _ => matches!(again, 200 | 409),
        };
        assert!(is_as_told, "{}, then {again}", reply.status);
    }
    scene.check_times();
}

#[test]
fn a_clock_that_jumps_while_changes_wait_stops_no_node() {
    let Some(scene) = Scene::start(3) else { return };
    check_jump(&scene, 900, [0, 1, 2, 3]);
    check_jump(&scene, -900, [4, 5, 6, 7]);
}

#[test]
fn a_node_whose_clock_is_wrong_says_so_and_is_not_ready_until_it_is_right() {
    let Some(scene) = Scene::start(2) else { return };
    for (seconds, words) in
        [(360, "ahead of the database's"), (-10, "behind the database's"), (8, "ahead of")]
    {
        scene.clocks[1].set(seconds);
        scene.await_not_ready(1, words);
        // Not 401, for which the client would be to blame.
        let refused = scene.cluster.node(1).send(&scene.request(0));
        assert!(refused.error(503).contains("clock"), "{seconds}");
        assert!(refused.header("retry-after").is_some());
        let by_its_clock = Request::get("/v1/pending_signatures");
        let by_its_clock = scene.alice.sign_at(by_its_clock, seconds_ago(-seconds), &new_nonce());
        scene.cluster.node(1).send(&by_its_clock).error(503);
        let listed = "select count(*) from svc_node where abs(clock_millis) > 5000";
        await_that("the node is listed with its clock", || scene.cluster.postgres.sql(listed) == "1");
        assert_eq!(scene.cluster.node(0).get("/readyz").status, 200);
        scene.clocks[1].set(0);
        scene.cluster.await_ready();
    }
    scene.cluster.node(1).await_log("accepts no signed requests until its clock is right", 3);
    assert_eq!(scene.cluster.node(1).send(&scene.request(0)).status, 200);
    // A moment is no fault.
    for (index, seconds) in [(1, 3), (2, -3)] {
        scene.clocks[1].set(seconds);
        assert_eq!(scene.cluster.node(1).send(&scene.request(index)).status, 200, "{seconds}");
        assert_eq!(scene.cluster.node(0).send(&scene.request(index + 2)).status, 200, "{seconds}");
        assert_eq!(scene.cluster.node(1).get("/readyz").status, 200, "{seconds}");
    }
    scene.check_times();
}
