//! A log that shows different histories to different people.

use countersign_core::log::checkpoint::WitnessRequest;

use super::asking::{await_staple, release};
use crate::support::mirrors::{await_same, start_mirror, tip_of, url_of};
use crate::support::witnesses::{LogSetup, TestWitness, await_logged, log_key_of, start_witnessed};
use crate::support::{metrics::await_value, metrics::free_address, waiting::wait_until};
use crate::support::{past::past, rewriting::import};

#[test]
fn another_history_under_the_same_key_is_refused_and_kept_as_evidence() {
    let (world, witness) = start_witnessed();
    let index = release(&world, "1.0");
    await_staple(&world, &index, &[&witness]);
    // The fork signs with the same key, and has a repository of its own.
    let key = world.server.data_dir().join("log/key");
    let fork = LogSetup { key: Some(key), ..LogSetup::default() }.start();
    release(&fork, "1.0");
    let forked = await_logged(&fork.server);
    assert_eq!(log_key_of(&fork.server), log_key_of(&world.server));
    let honest = witness.cosigned(&log_key_of(&world.server)).unwrap();
    assert_eq!(honest.checkpoint().size, forked.checkpoint().size);
    assert_ne!(honest.checkpoint().root, forked.checkpoint().root);
    let size = forked.checkpoint().size;
    let request = WitnessRequest { old: size, proof: Vec::new(), note: forked.log_note() };
    assert_eq!(witness.add_checkpoint(&request).status, 422);
    let evidence = witness.evidence();
    let [evidence] = evidence.as_slice() else { panic!("one file: {evidence:?}") };
    for note in [forked.log_note(), honest.log_note()] {
        assert!(evidence.contains(&note.to_string()), "{note} is not in {evidence}");
    }
    witness.server.await_log("has forked", 1);
    // From now on it cosigns nothing, for the honest server either.
    release(&world, "1.1");
    let newest = await_logged(&world.server);
    world.server.await_log("does not cosign", 1);
    assert_eq!(witness.cosigned(&log_key_of(&world.server)).unwrap().checkpoint().size, size);
    let resumed = witness.server.admin(&["witness", "resume"]).output();
    assert!(resumed.status.success(), "{resumed:?}");
    let proof = vec![];
    let request = WitnessRequest { old: 0, proof, note: newest.log_note() };
    assert_eq!(witness.add_checkpoint(&request).text(), format!("{size}\n"), "it keeps its record");
    wait_until("it does not cosign again", || {
        let cosigned = witness.cosigned(&log_key_of(&world.server)).unwrap();
        cosigned.checkpoint().size >= newest.checkpoint().size
    });
}

#[test]
fn a_checkpoint_that_the_journal_does_not_give_is_never_cosigned() {
    let origin = free_address();
    let mut witness = TestWitness::prepare(origin, "one.example", &[]);
    // The witness is asked by the fork only, before it has seen any checkpoint of the honest server.
    let world = LogSetup::at(origin).start();
    release(&world, "1.0");
    let honest = await_logged(&world.server);
    witness.server.start_again();
    let key = world.server.data_dir().join("log/key");
    let fork = LogSetup { key: Some(key), ..LogSetup::default() }.start();
    release(&fork, "1.0");
    let forked = await_logged(&fork.server);
    assert_eq!(honest.checkpoint().size, forked.checkpoint().size);
    let request = WitnessRequest { old: 0, proof: Vec::new(), note: forked.log_note() };
    let mut reply = witness.add_checkpoint(&request);
    wait_until("the witness never comes so far", || {
        reply = witness.add_checkpoint(&request);
        !matches!(reply.status, 404 | 503)
    });
    assert_eq!(reply.status, 422, "{}", reply.text());
    assert!(witness.cosigned(&log_key_of(&world.server)).is_none());
    assert_eq!(witness.evidence().len(), 1);
}

#[test]
fn a_witness_that_stopped_at_a_commit_that_breaks_the_rules_tells_the_log_so() {
    let (mut world, witness) = start_witnessed();
    let index = release(&world, "1.0");
    await_staple(&world, &index, &[&witness]);
    world.server.stop();
    world.git().commit_file("https/example.org/443/acme/app/unknown.json", b"{}");
    world.server.start_again();
    witness.server.await_log("the mirror stops following", 1);
    let newest = await_logged(&world.server);
    world.server.await_log("the witness has stopped: ask its operator", 1);
    world.server.await_log("it has stopped following the journal", 1);
    await_value(world.server.metrics_address(), "countersign_log_witness_stopped{witness=\"w0\"}", 1.0);
    let seen = witness.cosigned(&log_key_of(&world.server)).unwrap().checkpoint().size;
    let proof = vec![];
    let request = WitnessRequest { old: 0, proof, note: newest.log_note() };
    assert_eq!(witness.add_checkpoint(&request).text(), format!("{seen}\n"), "it says what it has seen");
    let log = world.server.stop_and_read_log();
    let (_, after) = log.split_once("the witness has stopped: ask its operator").unwrap();
    assert!(after.contains("unknown.json") && !after.contains("try again"), "{log}");
}

/// A mirror and a witness follow a server that has everything in its history, and then another one that dropped what a
/// builder stated.
#[test]
fn mirrors_and_witnesses_replay_everything_that_a_server_does_and_stop_at_a_lie() {
    let lie = past().with_a_dropped_difference();
    for (commits, true_ones) in [(&past().commits, past().commits.len()), (&lie, lie.len() - 1)] {
        let origin = free_address();
        let mut witness = TestWitness::prepare(origin, "one.example", &[]);
        let mut world = LogSetup::at(origin).witnessed(&[&witness], &[]).prepare();
        let ids = import(&world.server.repository(), commits);
        world.server.start_again();
        witness.server.start_again();
        let mirror = start_mirror(&url_of(&world.server));
        let size = await_logged(&world.server).checkpoint().size;
        assert_eq!(size, commits.len() as u64);
        let cosigned = || witness.cosigned(&log_key_of(&world.server));
        if true_ones == commits.len() {
            await_same(&mirror, &world.server);
            wait_until("it cosigns nothing", || {
                cosigned().is_some_and(|cosigned| cosigned.checkpoint().size == size)
            });
        } else {
            for follower in [&mirror, &witness.server] {
                follower.await_log("the mirror stops following", 1);
                let said = follower.get("/readyz").error(503);
                let words = format!("the commit {} breaks the rules", ids[true_ones]);
                assert!(said.contains(&words), "{said}");
                assert_eq!(tip_of(follower).as_deref(), Some(ids[true_ones - 1].as_str()));
            }
            world.server.await_log("the witness has stopped: ask its operator", 1);
            // The log can have signed a part of it before it knew the rest.
            assert!(cosigned().is_none_or(|cosigned| cosigned.checkpoint().size <= true_ones as u64));
        }
    }
}
