//! 64 people who sign a few releases, each at nodes that they pick at random, until every signature is acknowledged.

use std::{net::SocketAddr, sync::Condvar, sync::Mutex, time::Duration, time::Instant};

use countersign_testing::linearizable::{CallRecorder, CallResult, check};
use serde_json::{Value, json};

use super::nodes::{Cluster, read};
use crate::support::{Git, Person, Reply, Request, SignersFile, TestServer, World, http::try_send};

pub(super) const PEOPLE: usize = 64;
const RELEASES: usize = 3;
/// The time for all of a load, faults and repetitions included.
const TIMEOUT: Duration = Duration::from_secs(27);

pub(super) struct Load {
    people: Vec<Person>,
    /// The paths of the indexes to sign, and their bytes.
    releases: Vec<(String, Vec<u8>)>,
    acknowledged: Acknowledged,
}

/// How many signatures were acknowledged. Faults happen by it, not by the clock.
#[derive(Default)]
pub(super) struct Acknowledged(Mutex<usize>, Condvar);

impl Acknowledged {
    fn add_one(&self) {
        *self.0.lock().expect("no client has failed") += 1;
        self.1.notify_all();
    }

    pub(super) fn count(&self) -> usize {
        *self.0.lock().expect("no client has failed")
    }

    /// Waits for so many more, or until the time is over: those who wait for a silent node acknowledge nothing.
    pub(super) fn await_more(&self, more: usize, at_most: Duration) {
        let wanted = self.count() + more;
        let held = self.0.lock().expect("no client has failed");
        let _ = self.1.wait_timeout_while(held, at_most, |count| *count < wanted);
    }
}

/// Random numbers that follow from the client.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }
}

impl Load {
    /// A project whose releases need all of them, so a release waits for a key until that key has signed.
    pub(super) fn prepare(world: &World) -> Self {
        let people: Vec<_> = (0..PEOPLE).map(|n| Person::named(&format!("signer {n}"))).collect();
        let everyone: Vec<_> = people.iter().collect();
        world.register(everyone[0], "acme/app", &SignersFile::of(PEOPLE, &everyone)).ok();
        let pending = world.pending_path("acme/app");
        // All at once, because one after the other takes seconds.
        std::thread::scope(|scope| {
            for person in &everyone {
                scope.spawn(|| world.sign(person, &pending).ok());
            }
        });
        let releases = (0..RELEASES).map(|n| {
            let index = world.add_release(everyone[0], &format!("acme/app/v{n}"));
            let bytes = world.read(&index);
            (index, bytes)
        });
        Self { releases: releases.collect(), people, acknowledged: Acknowledged::default() }
    }

    /// Everyone signs everything while `faults` happen; then the history of the calls is checked.
    #[track_caller]
    pub(super) fn run(&self, nodes: &[SocketAddr], faults: impl FnOnce(&Acknowledged)) {
        let histories: Vec<_> = self.releases.iter().map(|_| CallRecorder::default()).collect();
        let end = Instant::now() + TIMEOUT;
        std::thread::scope(|scope| {
            for key in 0..PEOPLE {
                let client = Client { load: self, nodes, key, end };
                let histories = &histories;
                scope.spawn(move || client.sign_all(histories));
            }
            faults(&self.acknowledged);
        });
        for history in histories {
            if let Err(contradiction) = check(&history.into_calls()) {
                panic!("the calls are not linearizable: {contradiction}");
            }
        }
    }

    /// Every key is there once on this node, by one commit.
    #[track_caller]
    pub(super) fn check_signatures(&self, node: &TestServer) {
        let mut keys: Vec<_> = self.people.iter().map(Person::key).collect();
        keys.sort();
        let titles = Git::at(node.repository()).run(&["log", "--format=%s", "main"]);
        for (index, _) in &self.releases {
            let stored = read(node, &format!("{index}.signatures.json"));
            let stored: Value = serde_json::from_slice(&stored).expect("a JSON file");
            let held: Vec<_> = stored["entries"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(held, keys, "{index}");
            let signing = [format!("Sign {index}"), format!("Sign and complete {index}")];
            let commits = titles.lines().filter(|title| signing.iter().any(|wanted| wanted == title));
            assert_eq!(commits.count(), PEOPLE, "{index}");
        }
    }

    /// Checks the signatures on all nodes, which agree.
    #[track_caller]
    pub(super) fn check_cluster(&self, cluster: &Cluster) {
        cluster.check_at_rest();
        (0..cluster.ways.len()).for_each(|node| self.check_signatures(cluster.node(node)));
    }
}

#[derive(Clone, Copy)]
struct Client<'a> {
    load: &'a Load,
    nodes: &'a [SocketAddr],
    key: usize,
    end: Instant,
}

impl Client<'_> {
    fn person(&self) -> &Person {
        &self.load.people[self.key]
    }

    fn sign_all(self, histories: &[CallRecorder]) {
        let mut random = Random(u64::try_from(self.key).expect("a small number"));
        for ((index, bytes), history) in self.load.releases.iter().zip(histories) {
            self.look(index, history, &mut random);
            while !self.sign(index, bytes, history, &mut random) {
                assert!(Instant::now() < self.end, "key {} could not sign {index} in time", self.key);
                std::thread::sleep(Duration::from_millis(20));
            }
            self.load.acknowledged.add_one();
            self.look(index, history, &mut random);
        }
    }

    /// An authenticated read: whether the release still waits for this key.
    fn look(self, index: &str, history: &CallRecorder, random: &mut Random) {
        let node = random.below(self.nodes.len());
        history.record(node, || {
            let request = self.person().sign(Request::get("/v1/pending_signatures"));
            let answer = certain(try_send(self.nodes[node], &request))?.ok();
            let waits = answer["file_paths"].as_array().expect("a list").contains(&json!(index));
            Some(CallResult::ReadKey { key: self.key, is_there: !waits })
        });
    }

    /// True once it is certain that the signature is there.
    fn sign(self, index: &str, bytes: &[u8], history: &CallRecorder, random: &mut Random) -> bool {
        let node = random.below(self.nodes.len());
        let (person, key) = (self.person(), self.key);
        let signatures = json!({ index: person.sign_bytes(bytes) });
        let body = json!({ "file_path": index, "public_key": person.body_key(), "signatures": signatures });
        let mut is_certain = false;
        history.record(node, || {
            let request = person.sign(Request::post("/v1/signatures", &body));
            let reply = certain(try_send(self.nodes[node], &request));
            is_certain = reply.is_some();
            Some(match reply {
                None => CallResult::Unknown(key),
                Some(reply) if reply.status == 409 => CallResult::SignedBefore(key),
                Some(reply) => {
                    reply.ok();
                    CallResult::Signed(key)
                }
            })
        });
        is_certain
    }
}

/// An answer that says what happened: not 503, and not a connection that broke.
#[track_caller]
fn certain(reply: std::io::Result<Reply>) -> Option<Reply> {
    let reply = reply.ok()?;
    if reply.status != 503 {
        return Some(reply);
    }
    assert!(reply.header("retry-after").is_some(), "503 says when to try again: {}", reply.text());
    None
}
