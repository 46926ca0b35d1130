//! Answers of the database that get lost, before and after the statement took effect.

use std::time::Duration;

use countersign_testing::proxy::{LossMoment, LostAnswer};
use serde_json::json;

use super::{load::Load, load::PEOPLE, nodes::Cluster, nodes::await_that};
use crate::support::{Person, Request, SignersFile};

const APPEND: &str = "insert into svc_batch";
const NONCE: &str = "insert into svc_nonce";

fn lost(statement: &'static str, moment: LossMoment) -> LostAnswer {
    LostAnswer { statement, nth: 1, moment }
}

#[test]
fn a_signature_whose_append_lost_its_answer_is_there_once_and_a_nonce_is_used() {
    let Some(cluster) = Cluster::start(2) else { return };
    let people: Vec<_> = (0..8).map(|n| Person::named(&format!("signer {n}"))).collect();
    let everyone: Vec<_> = people.iter().collect();
    cluster.world.activate("acme/app", &SignersFile::of(8, &everyone), &everyone);
    let index = cluster.world.add_release(everyone[0], "acme/app/v1");
    for (n, person) in people.iter().enumerate() {
        let (node, moment) = (n % 2, [LossMoment::BeforeEffect, LossMoment::AfterEffect][n / 2 % 2]);
        let body = cluster.world.signature_body(person, &index);
        let submit = |node: usize| {
            cluster.node(node).send(&person.sign(Request::post("/v1/signatures", &body))).status
        };
        cluster.ways[node].lose(lost(APPEND, moment));
        let first = submit(node);
        cluster.ways[node].await_loss();
        // The node finds out what happened, or says that it does not know. The other node then tells.
        let second = submit(1 - node);
        assert!(matches!((first, second), (200, 409) | (503, 200 | 409)), "{moment:?}: {first} {second}");
        assert_eq!(submit(node), 409, "{moment:?}");
    }
    cluster.check_at_rest();
    let stored = cluster.world.read_json(&format!("{index}.signatures.json"));
    assert_eq!(stored["entries"].as_object().unwrap().len(), 8);

    // A request whose nonce got no answer is 503, and its nonce is never accepted later.
    let alice = everyone[0];
    let request = alice.sign(Request::get("/v1/pending_signatures"));
    cluster.ways[1].lose(lost(NONCE, LossMoment::AfterEffect));
    let reply = cluster.node(1).send(&request);
    cluster.ways[1].await_loss();
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.header("retry-after").is_some());
    assert_eq!(cluster.node(0).send(&request).status, 401);
    // A request that is signed anew goes through, as soon as the node has its connection back.
    await_that("the node answers again", || cluster.get_as(1, alice, "/v1/pending_signatures").status == 200);
    let answer = cluster.get_as(1, alice, "/v1/pending_signatures").ok();
    assert_eq!(answer["file_paths"], json!([]));
}

/// The first appends of each node in a load lose their answers: those that never arrive, and those that took effect.
#[test]
fn appends_that_lose_their_answers_under_load_are_neither_lost_nor_repeated() {
    let Some(cluster) = Cluster::start(3) else { return };
    let load = Load::prepare(&cluster.world);
    let moments = [LossMoment::BeforeEffect, LossMoment::AfterEffect, LossMoment::BeforeEffect];
    for (way, moment) in cluster.ways.iter().zip(moments) {
        way.lose(lost(APPEND, moment));
    }
    load.run(&cluster.addresses(), |acknowledged| {
        acknowledged.await_more(PEOPLE, Duration::from_secs(5));
        cluster.ways[2].lose(lost(APPEND, LossMoment::AfterEffect));
    });
    load.check_cluster(&cluster);
    assert!(cluster.ways[..2].iter().all(|way| way.lost() > 0), "an append lost its answer in each way");
}
