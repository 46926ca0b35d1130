//! Nodes of `countersign serve`, each with a way of its own to one database.

use std::{net::Ipv4Addr, net::SocketAddr, time::Duration, time::Instant};

use countersign_testing::{literals::free_port, postgres::Postgres, postgres::PostgresOptions, proxy::Proxy};

use crate::support::{Git, Launch, Person, Reply, Request, TestServer, World, fsck::fsck, http};

/// A cluster that has not come back after this long does not come back by itself.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);

/// Fields are dropped in this order: nodes end before what they need.
pub(super) struct Cluster {
    /// A world with node 0 as its server.
    pub(super) world: World,
    others: Vec<TestServer>,
    /// The way of each node to the database.
    pub(super) ways: Vec<Proxy>,
    pub(super) postgres: Postgres,
}

impl Cluster {
    /// `None` where PostgreSQL is not installed; it then says so.
    pub(super) fn start(nodes: usize) -> Option<Self> {
        // Processes die in these tests, not the machine.
        let options =
            PostgresOptions { skips_fsync: true, needs_password: true, ..PostgresOptions::default() };
        Some(Self::start_on(Postgres::start_with(options)?, nodes))
    }

    pub(super) fn start_on(postgres: Postgres, nodes: usize) -> Self {
        Self::start_as(postgres, nodes, |launch| launch)
    }

    /// Begins with nodes that are started in this way.
    pub(super) fn start_as(postgres: Postgres, nodes: usize, adapt: impl Fn(Launch) -> Launch) -> Self {
        let ways: Vec<_> = (0..nodes).map(|_| Proxy::for_postgres(postgres.address())).collect();
        let on_database = |launch: Launch, way: &Proxy| {
            let url = postgres.url_at(way.address());
            adapt(launch.at(new_address()).arg("--dev").env("COUNTERSIGN_DATABASE", &url))
        };
        let world = World::start_with(|launch, _| on_database(launch, &ways[0]));
        let start = |way| TestServer::start_with(|launch| on_database(launch, way));
        let others = ways[1..].iter().map(start).collect();
        let cluster = Self { world, others, ways, postgres };
        cluster.await_ready();
        cluster
    }

    pub(super) fn node(&self, node: usize) -> &TestServer {
        if node == 0 { &self.world.server } else { &self.others[node - 1] }
    }

    pub(super) fn node_mut(&mut self, node: usize) -> &mut TestServer {
        if node == 0 { &mut self.world.server } else { &mut self.others[node - 1] }
    }

    fn nodes(&self) -> impl Iterator<Item = &TestServer> {
        (0..self.ways.len()).map(|node| self.node(node))
    }

    /// They stay the same when nodes start again.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes().map(TestServer::address).collect()
    }

    pub(super) fn get_as(&self, node: usize, person: &Person, target: &str) -> Reply {
        self.node(node).send(&person.sign(Request::get(target)))
    }

    pub(super) fn git(&self, node: usize) -> Git {
        Git::at(self.node(node).repository())
    }

    /// The newest commit on a node's disk.
    pub(super) fn head(&self, node: usize) -> String {
        self.git(node).run(&["rev-parse", "main"])
    }

    /// The newest commit that a node serves. It may not be on its disk yet.
    pub(super) fn served(&self, node: usize) -> String {
        let rest = self.node(node).get(&format!("/v1/journal?after={}", self.head(node)));
        rest.header("x-svc-commit").expect("the journal names it").to_owned()
    }

    #[track_caller]
    pub(super) fn await_ready(&self) {
        for node in self.nodes() {
            await_that("a node is ready", || {
                let reply = http::try_send(node.address(), &Request::get("/readyz")).ok();
                reply.is_some_and(|reply| reply.status == 200)
            });
        }
    }

    /// Cuts every connection of a node to the database and lets no new one through.
    pub(super) fn cut_off(&self, node: usize) {
        self.ways[node].refuse();
        self.ways[node].cut();
    }

    /// Every node has the same commit on its disk, and serves nothing newer.
    #[track_caller]
    pub(super) fn await_rest(&self) {
        self.await_ready();
        await_that("all nodes have the same commit, and nothing newer", || {
            let first = self.head(0);
            (0..self.ways.len()).all(|node| self.head(node) == first && self.served(node) == first)
        });
    }

    /// Waits until all nodes are at rest, and checks that the commits are what the rules give.
    #[track_caller]
    pub(super) fn check_at_rest(&self) {
        self.await_rest();
        let nodes = 0..self.ways.len();
        let last = nodes.end - 1;
        nodes.for_each(|node| self.git(node).assert_sound());
        // All nodes have this commit, so the rules say the same of all.
        fsck(&self.node(last).repository(), &[]).is_clean();
    }
}

/// A file that a node serves to everyone.
#[track_caller]
pub(super) fn read(node: &TestServer, path: &str) -> Vec<u8> {
    let reply = node.get(&format!("/v1/files/{path}"));
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.body
}

/// One that a node keeps when it is started again.
pub(super) fn new_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

/// Asks again until it is so. What other processes do has no event here.
#[track_caller]
pub(super) fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "not within {TIMEOUT:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
