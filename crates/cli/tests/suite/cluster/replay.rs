//! A signed request counts once in the whole cluster, and answers are up to date on every node.

use std::sync::Barrier;

use serde_json::json;

use super::nodes::Cluster;
use crate::support::mirrors::{await_tip, start_mirror, url_of};
use crate::support::{Person, Request, SignersFile};

/// The statuses of one request on two nodes at once, in order.
fn send_to_both(cluster: &Cluster, request: &Request) -> [u16; 2] {
    let start = Barrier::new(2);
    let mut statuses = std::thread::scope(|scope| {
        let sent = [0, 1].map(|node| {
            let (node, start) = (cluster.node(node), &start);
            scope.spawn(move || {
                start.wait();
                node.send(request).status
            })
        });
        sent.map(|thread| thread.join().unwrap())
    });
    statuses.sort_unstable();
    statuses
}

#[test]
fn one_request_on_two_nodes_at_once_is_accepted_once_and_stays_used_when_all_are_killed() {
    let Some(mut cluster) = Cluster::start(2) else { return };
    let alice = Person::named("alice");
    cluster.world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    for _ in 0..5 {
        let request = alice.sign(Request::get("/v1/pending_signatures"));
        assert_eq!(send_to_both(&cluster, &request), [200, 401]);
        for node in [0, 1] {
            cluster.node(node).send(&request).error(401);
        }
    }
    for n in 0..5 {
        let index = cluster.world.add_release(&alice, &format!("acme/app/v{n}"));
        let body = cluster.world.signature_body(&alice, &index);
        let request = alice.sign(Request::post("/v1/signatures", &body));
        assert_eq!(send_to_both(&cluster, &request), [200, 401]);
    }
    let request = alice.sign(Request::get("/v1/pending_signatures"));
    cluster.node(0).send(&request).ok();
    for node in [0, 1] {
        cluster.node_mut(node).crash_and_restart();
        cluster.await_ready();
        cluster.node(node).send(&request).error(401);
    }
    cluster.check_at_rest();
}

#[test]
fn what_one_node_acknowledged_every_node_shows_at_once_and_mirrors_follow_any() {
    let Some(cluster) = Cluster::start(3) else { return };
    let mirror = start_mirror(&url_of(cluster.node(1)));
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    cluster.world.activate("acme/app", &SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    for n in 0..15 {
        let index = cluster.world.add_release(&alice, &format!("acme/app/v{n}"));
        for (signer, is_complete) in [(&alice, false), (&bob, true)] {
            let body = cluster.world.signature_body(signer, &index);
            let request = signer.sign(Request::post("/v1/signatures", &body));
            cluster.node(n % 3).send(&request).ok();
            let status = cluster.get_as((n + 1) % 3, &alice, &format!("/v1/signatures/{index}")).ok();
            assert_eq!(status["is_complete"], json!(is_complete));
            let pending = cluster.get_as((n + 2) % 3, signer, "/v1/pending_signatures").ok();
            assert_eq!(pending["file_paths"], json!([]));
        }
    }
    cluster.check_at_rest();
    await_tip(&mirror, &cluster.head(0));
}
