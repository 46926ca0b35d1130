//! A node that breaks the rules stops, and the others pass over what it wrote (D195, D196, D197).

use std::{cell::Cell, fs};

use serde_json::Value;

use super::nodes::{Cluster, await_that};
use crate::support::{Git, Person, Request, SignersFile, TestServer};

const FORGED: &str = "https/example.org/443/acme/forged.json";

struct Scene {
    cluster: Cluster,
    alice: Person,
    indexes: Vec<String>,
    signed: Cell<usize>,
}

impl Scene {
    fn start(nodes: usize) -> Option<Self> {
        let cluster = Cluster::start(nodes)?;
        let alice = Person::named("alice");
        cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
        let release = |n: usize| cluster.world.add_release(&alice, &format!("acme/app/v{n}"));
        let indexes = (0..12).map(release).collect();
        cluster.check_at_rest();
        Some(Self { cluster, alice, indexes, signed: Cell::new(0) })
    }

    fn sign(&self, node: usize, index: usize) -> u16 {
        let body = self.cluster.world.signature_body(&self.alice, &self.indexes[index]);
        self.cluster.node(node).send(&self.alice.sign(Request::post("/v1/signatures", &body))).status
    }

    /// Each of these nodes accepts the signature of a release that is not signed yet.
    fn check_signing(&self, nodes: &[usize]) {
        for node in nodes {
            let index = self.signed.replace(self.signed.get() + 1);
            assert_eq!(self.sign(*node, index), 200, "node {node}");
        }
    }

    fn await_stop(&self, node: usize, words: &str) {
        let told = || self.cluster.node(node).get("/readyz");
        await_that(words, || told().status == 503 && told().text().contains(words));
        assert_eq!(self.sign(node, self.indexes.len() - 1), 503);
        assert_eq!(self.cluster.node(node).get("/").status, 200);
    }

    fn check_ready(&self, nodes: &[usize]) {
        for node in nodes {
            let reply = self.cluster.node(*node).get("/readyz");
            assert_eq!(reply.status, 200, "node {node}: {}", reply.text());
        }
    }

    /// Puts a commit into the order that no decision gives, on top of the newest one, as a node of this name would.
    /// Gives its id, and the server that has it.
    fn share_forged(&self, name: &str) -> (String, TestServer) {
        let base = self.cluster.head(0);
        let mut forger = self.cluster.node(0).clone_mirror();
        forger.stop();
        let git = Git::at(forger.repository());
        git.commit_file(FORGED, b"forged");
        let forged = git.run(&["rev-parse", "main"]);
        forger.start_again();
        let journal = forger.get(&format!("/v1/journal?after={base}")).body;
        let body: String = journal.iter().map(|byte| format!("{byte:02x}")).collect();
        self.cluster.postgres.sql(&format!(
            "insert into svc_batch (seq, id, node, base, head, commits, body) select max(seq) + 1, gen_random_uuid(), \
             '{name}', decode('{base}', 'hex'), decode('{forged}', 'hex'), 1, decode('{body}', 'hex') from svc_batch"
        ));
        (forged, forger)
    }

    fn status(&self) -> Value {
        serde_json::from_slice(&self.show_status(&["--json"])).expect("a JSON answer")
    }

    fn show_status(&self, options: &[&str]) -> Vec<u8> {
        let launch = self.cluster.node(0).admin(&[&["cluster", "status"], options].concat());
        launch.env("COUNTERSIGN_DATABASE", &self.cluster.postgres.url()).output().stdout
    }

    /// What docs/cluster.md tells an operator to do with a wrong node.
    fn refill(&mut self, node: usize) {
        let server = self.cluster.node_mut(node);
        server.stop();
        fs::remove_dir_all(server.data_dir()).expect("a directory");
        server.start_again();
        self.cluster.await_ready();
    }
}

#[test]
fn a_batch_that_breaks_the_rules_is_passed_over_by_all_nodes_and_by_those_that_come_later() {
    let Some(mut scene) = Scene::start(3) else { return };
    let (forged, _) = scene.share_forged("wrong");
    await_that("all nodes pass over it", || {
        scene.cluster.postgres.sql("select count(*) from svc_passed") == "3"
    });
    await_that("all nodes go on", || {
        (0..3).all(|node| scene.cluster.node(node).get("/readyz").status == 200)
    });
    scene.check_signing(&[0, 1, 2]);
    for node in 0..3 {
        scene.cluster.node(node).await_log("a batch breaks the rules", 1);
    }
    let status = scene.status();
    assert_eq!(status["passed_over"][0]["node"], "wrong", "{status}");
    assert_eq!(status["passed_over"][0]["commit"], forged.as_str());
    let shown = String::from_utf8(scene.show_status(&[])).unwrap();
    let nodes: Vec<&str> = shown.lines().skip_while(|line| !line.starts_with("NODE ")).take(4).collect();
    assert!(nodes.len() == 4 && nodes.iter().all(|line| line.len() <= 60), "{shown}");
    scene.cluster.check_at_rest();
    scene.cluster.node_mut(1).restart();
    scene.refill(2);
    scene.cluster.check_at_rest();
    scene.check_signing(&[2]);
    scene.cluster.check_at_rest();
    scene.check_ready(&[0, 1, 2]);
}

#[test]
fn a_forged_commit_in_a_stopped_node_stops_that_node_alone_whatever_the_order_has() {
    let Some(mut scene) = Scene::start(3) else { return };
    scene.cluster.node_mut(2).stop();
    let git = scene.cluster.git(2);
    git.commit_file(FORGED, b"forged");
    let forged = git.run(&["rev-parse", "main"]);
    scene.cluster.node_mut(2).start_again();
    scene.await_stop(2, &forged);
    scene.check_ready(&[0, 1]);
    scene.check_signing(&[0, 1]);
    let spread = format!("select count(*) from svc_batch where head = decode('{forged}', 'hex')");
    assert_eq!(scene.cluster.postgres.sql(&spread), "0");
    // Nor from the next start on, nor through an empty database.
    scene.cluster.node_mut(2).restart();
    scene.await_stop(2, &forged);
    scene.check_ready(&[0, 1]);
    scene.cluster.node_mut(2).stop();
    scene.cluster.postgres.sql("create database empty");
    let url = scene.cluster.postgres.url();
    let url = format!("{}/empty", url.rsplit_once('/').unwrap().0);
    let init = scene.cluster.node(2).admin(&["cluster", "init"]).env("COUNTERSIGN_DATABASE", &url).output();
    let said = String::from_utf8_lossy(&init.stderr);
    assert!(!init.status.success() && said.contains(&forged), "{said}");
    scene.cluster.node_mut(2).start_again();
    scene.refill(2);
    scene.cluster.check_at_rest();

    // Node 2 believes in its commit: it is on its branch, and the order has it.
    scene.cluster.node_mut(2).stop();
    let (forged, forger) = scene.share_forged("two");
    let from = forger.repository();
    scene.cluster.git(2).run(&["fetch", "--quiet", from.to_str().unwrap(), "+main:main"]);
    assert_eq!(scene.cluster.head(2), forged);
    scene.cluster.node_mut(2).start_again();
    scene.await_stop(2, &forged);
    scene.check_ready(&[0, 1]);
    await_that("it is named", || {
        let status = scene.status();
        let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
        let names_it = |node: &Value| node["stopped"].as_str().is_some_and(|why| why.contains(&forged));
        nodes.iter().filter(|node| node["state"] == "stopped" && names_it(node)).count() == 1
    });
    scene.check_signing(&[0, 1]);
    scene.cluster.node_mut(2).restart();
    scene.await_stop(2, &forged);
    scene.refill(2);
    scene.cluster.check_at_rest();
}

#[test]
fn two_nodes_that_went_different_ways_are_not_both_ready() {
    let Some(scene) = Scene::start(2) else { return };
    let cluster = &scene.cluster;
    cluster.cut_off(1);
    assert_eq!(scene.sign(0, 0), 200);
    cluster.cut_off(0);
    // The database is set back, and the other node is first.
    cluster.postgres.sql("delete from svc_batch where seq = (select max(seq) from svc_batch)");
    cluster.ways[1].restore();
    await_that("the other node goes on", || matches!(scene.sign(1, 1), 200 | 409));
    cluster.ways[0].restore();
    scene.await_stop(0, "another commit");
    scene.check_ready(&[1]);
    assert_eq!(scene.sign(1, 2), 200);
}
