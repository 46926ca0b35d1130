//! What a witness answers, as c2sp.org/tlog-witness says: with a log that the test keeps itself.

use std::sync::Barrier;

use countersign_core::log::checkpoint::{Checkpoint, WitnessRequest};
use countersign_core::log::{note::Note, note::NoteSignature, tree::leaf_hash};
use countersign_core::values::bounds::WITNESS_REQUEST_BYTES;

use super::asking::{await_staple, release};
use crate::support::witnesses::{OwnLog, TestWitness, await_logged, log_key_of, run_json, start_witnessed};
use crate::support::{Launch, metrics::free_address};

fn log() -> OwnLog {
    let mut log = OwnLog::named("log.example/one", 7);
    log.grow("leaf", 20);
    log
}

#[test]
fn a_witness_cosigns_what_continues_the_log() {
    let log = log();
    let witness = TestWitness::start_ordinary(&[&log]);
    assert!(witness.cosigned(&log.key).is_none(), "nothing was cosigned yet");
    for (old, size) in [(0, 5), (5, 5), (5, 13), (13, 20)] {
        let reply = witness.add_checkpoint(&log.request(old, size));
        assert_eq!(reply.status, 200, "{old} {size}: {}", reply.text());
        let lines = NoteSignature::parse_lines(&reply.body).unwrap();
        let mut signed = log.checkpoint(size);
        let added = signed.add_cosignatures(&lines, std::slice::from_ref(&witness.key)).unwrap();
        let [cosignature] = added.as_slice() else { panic!("one cosignature: {added:?}") };
        let now = crate::support::people::now().unix_seconds().unsigned_abs();
        assert!(now.abs_diff(cosignature.time) < 60, "{cosignature:?}");
        assert_eq!(witness.cosigned(&log.key).unwrap().checkpoint().size, size);
    }
}

#[test]
fn a_witness_cosigns_with_each_type_of_key() {
    let log = log();
    for (key_type, ids) in [("ml-dsa-44", 1), ("both", 2)] {
        let mut witness = TestWitness::start_ordinary_with(key_type, &[&log]);
        assert_eq!(witness.keys().len(), ids);
        for (old, size) in [(0, 5), (5, 13)] {
            let reply = witness.add_checkpoint(&log.request(old, size));
            assert_eq!(reply.status, 200, "{}", reply.text());
            let lines = NoteSignature::parse_lines(&reply.body).unwrap();
            assert_eq!(lines.len(), ids);
            let mut signed = log.checkpoint(size);
            let added = signed.add_cosignatures(&lines, &witness.keys()).unwrap();
            assert_eq!(added.iter().map(|by| by.witness.clone()).collect::<Vec<_>>(), witness.keys());
            assert!(added.iter().all(|by| by.time == added[0].time));
            assert_eq!(witness.cosigned(&log.key).unwrap().checkpoint().size, size);
            witness.server.restart();
        }
        assert_eq!(witness.add_checkpoint(&log.request(0, 20)).text(), "13\n");
    }
}

#[test]
fn the_keys_of_a_witness_are_one_of_each_type_and_of_one_name() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let init = |name: &str, key_type: &str, key: &str| {
        run_json(&["admin", "witness", "init", "--name", name, "--type", key_type, "--key", &file(key)])
    };
    let made = init("one.example", "both", "one");
    assert_eq!(made["second"]["key_file"], file("one.ml-dsa"));
    let vkey = std::fs::read_to_string(file("one.ml-dsa.pub")).unwrap();
    assert_eq!(vkey.trim_end(), made["second"]["witness"]);
    init("two.example", "ml-dsa-44", "two");
    std::fs::write(file("cut"), std::fs::read_to_string(file("two")).unwrap().replacen("MDQC", "MDQD", 1))
        .unwrap();
    let refused = |key: &str, second: &[&str]| {
        let data = file("data");
        let args = ["witness", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--data-dir", &data, "--key"];
        Launch::default().args(args).arg(&file(key)).args(second.iter().copied()).refusal()
    };
    let second = |name: &str| file(name);
    for (key, more, said) in [
        ("one", ["--ml-dsa-key", &second("two")], "two.example"),
        ("one", ["--ml-dsa-key", &second("one")], "not a second key of another type"),
        ("two", ["--ml-dsa-key", &second("two")], "not a second key of another type"),
        ("one", ["--ml-dsa-key", &second("cut")], "no ML-DSA-44 key"),
        ("cut", ["--name", "w.example"], "no ML-DSA-44 key"),
        ("two", ["--name", "w example"], "cannot be called"),
    ] {
        let told = refused(key, &more);
        assert!(told.contains(said), "{key} {more:?}: {told}");
    }
    // Neither file is written if one of them is there.
    std::fs::write(file("three.ml-dsa.pub"), "mine").unwrap();
    let args = ["admin", "witness", "init", "--name", "w", "--type", "both", "--key", &file("three")];
    assert!(!Launch::default().args(args).output().status.success());
    assert!(!dir.path().join("three").exists() && !dir.path().join("three.pub").exists());
}

#[test]
fn each_refusal_has_its_status() {
    let (log, stranger) = (log(), OwnLog::named("log.example/two", 8));
    let witness = TestWitness::start_ordinary(&[&log]);
    // Malformed.
    for body in
        ["", "old 0\n", "old x\n\nlog.example/one\n1\n", "old 0\n\nnot a note\n", "new 0\n\na\n\n— a b\n"]
    {
        assert_eq!(witness.post(body).status, 400, "{body:?}");
    }
    let request = log.request(0, 5);
    // An unknown log, and unknown keys of a known one.
    let mut other = stranger;
    other.grow("leaf", 5);
    assert_eq!(witness.add_checkpoint(&other.request(0, 5)).status, 404);
    let unsigned = WitnessRequest { note: Note::new(request.note.text().to_owned()), ..request.clone() };
    assert!(matches!(witness.add_checkpoint(&unsigned).status, 400 | 403));
    let mut forger = OwnLog::named("log.example/one", 9);
    forger.grow("leaf", 5);
    assert_eq!(witness.add_checkpoint(&forger.request(0, 5)).status, 403);
    let mut altered = Note::new(log.checkpoint(4).text().to_owned());
    altered.add(request.note.signatures()[0].clone());
    let bad = WitnessRequest { note: altered, ..request.clone() };
    assert_eq!(witness.add_checkpoint(&bad).status, 403, "a known key, and a wrong signature");
    // A proof where none belongs, and the root of an empty log.
    let bad = WitnessRequest { proof: vec![leaf_hash(b"x")], ..request.clone() };
    assert_eq!(witness.add_checkpoint(&bad).status, 422);
    let empty = log.sign(Checkpoint { origin: log.key.name().to_owned(), size: 0, root: leaf_hash(b"x") });
    let bad = WitnessRequest { old: 0, proof: Vec::new(), note: empty.log_note() };
    assert_eq!(witness.add_checkpoint(&bad).status, 422);
    let sizes = |old, size| WitnessRequest { old, proof: Vec::new(), note: log.checkpoint(size).log_note() };
    assert_eq!(witness.add_checkpoint(&sizes(6, 5)).status, 400, "the old size is larger");
    // From now on it knows five.
    assert_eq!(witness.add_checkpoint(&request).status, 200);
    for old in [0, 3, 7] {
        let reply = witness.add_checkpoint(&log.request(old, 8));
        assert_eq!((reply.status, reply.text().as_str()), (409, "5\n"), "{old}");
        assert_eq!(reply.header("content-type"), Some("text/x.tlog.size"));
    }
    assert_eq!(witness.add_checkpoint(&sizes(6, 5)).status, 400, "that comes before the size on record");
    assert_eq!(witness.add_checkpoint(&sizes(5, 8)).status, 422, "without a proof");
    let mut wrong = log.request(5, 8);
    wrong.proof[0] = leaf_hash(b"x");
    assert_eq!(witness.add_checkpoint(&wrong).status, 422);
    assert!(witness.evidence().is_empty(), "a stranger can send a wrong proof");
    let too_large = vec![b'a'; WITNESS_REQUEST_BYTES + 1];
    assert_eq!(witness.post(too_large).status, 413);
    assert_eq!(witness.add_checkpoint(&log.request(5, 8)).status, 200, "none of this has stopped it");
}

#[test]
fn a_log_that_signs_two_roots_of_one_size_is_refused_for_ever() {
    let log = log();
    let mut fork = OwnLog::named("log.example/one", 7);
    fork.grow("other", 20);
    let mut witness = TestWitness::start_ordinary(&[&log]);
    assert_eq!(witness.add_checkpoint(&log.request(0, 5)).status, 200);
    assert_eq!(witness.add_checkpoint(&fork.request(5, 5)).status, 422);
    let evidence = witness.evidence();
    let [evidence] = evidence.as_slice() else { panic!("one file: {evidence:?}") };
    assert!(evidence.contains(&log.checkpoint(5).log_note().to_string()), "{evidence}");
    assert!(evidence.contains(&fork.checkpoint(5).log_note().to_string()), "{evidence}");
    // Also what is honest, and also after a restart.
    for _ in 0..2 {
        witness.add_checkpoint(&log.request(5, 8)).refused(403, "until its operator decides");
        assert_eq!(witness.add_checkpoint(&log.request(0, 8)).text(), "5\n");
        witness.server.restart();
    }
    let resumes =
        |witness: &TestWitness| witness.server.admin(&["witness", "resume"]).output().status.success();
    assert!(resumes(&witness));
    assert!(!resumes(&witness), "there is nothing more to decide");
    assert_eq!(witness.add_checkpoint(&log.request(5, 8)).status, 200);
    // The same lie stops it again.
    assert_eq!(witness.add_checkpoint(&fork.request(8, 8)).status, 422);
    assert_eq!(witness.add_checkpoint(&log.request(8, 9)).status, 403);
    witness.server.stop();
    assert!(resumes(&witness), "while it is stopped");
    witness.server.start_again();
    assert_eq!(witness.add_checkpoint(&log.request(8, 9)).status, 200);
}

#[test]
fn of_requests_at_the_same_time_only_one_continues_a_size() {
    let mut log = log();
    log.grow("leaf", 200);
    let witness = TestWitness::start_ordinary(&[&log]);
    let mut known = 0;
    for round in 0..10 {
        let sizes: Vec<u64> = (1..=4).map(|step| known + step * 2 + round % 2).collect();
        let barrier = Barrier::new(sizes.len());
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let ask = |size: &u64| {
                let (request, barrier, witness) = (log.request(known, *size), &barrier, &witness);
                scope.spawn(move || {
                    barrier.wait();
                    witness.add_checkpoint(&request).status
                })
            };
            let threads: Vec<_> = sizes.iter().map(ask).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let cosigned: Vec<u64> = sizes
            .iter()
            .zip(&statuses)
            .filter(|(_, status)| **status == 200)
            .map(|(size, _)| *size)
            .collect();
        let [size] = cosigned.as_slice() else { panic!("one of them: {statuses:?}") };
        assert_eq!(witness.cosigned(&log.key).unwrap().checkpoint().size, *size);
        known = *size;
    }
}

#[test]
fn a_witness_knows_its_log_from_the_first_moment_on() {
    // Before it has ever reached its server, it does not know which log that keeps.
    let log = log();
    let mut fresh = TestWitness::prepare(free_address(), "witness.example", &[]);
    fresh.server.start_again();
    let reply = fresh.add_checkpoint(&log.request(0, 5));
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")), "{}", reply.text());
    let reply = fresh.server.get(&TestWitness::checkpoint_target(log.key.name()));
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")), "{}", reply.text());
    // After a restart it does.
    let (world, mut witness) = start_witnessed();
    let index = release(&world, "1.0");
    let size = await_staple(&world, &index, &[&witness]).proof.index + 1;
    let newest = await_logged(&world.server);
    for _ in 0..5 {
        witness.server.restart();
        let request = WitnessRequest { old: 0, proof: Vec::new(), note: newest.log_note() };
        let reply = witness.add_checkpoint(&request);
        assert_eq!((reply.status, reply.text()), (409, format!("{size}\n")));
        let cosigned = witness.cosigned(&log_key_of(&world.server)).expect("what it has cosigned");
        assert_eq!(cosigned.checkpoint(), newest.checkpoint());
        // Of another log it knows that it does not know it.
        assert_eq!(witness.add_checkpoint(&log.request(0, 5)).status, 404);
    }
}
