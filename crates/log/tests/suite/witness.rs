//! A witness that is killed between any two steps never goes back, and never cosigns two roots of one size (D94).

use std::sync::{Arc, atomic::AtomicBool, atomic::AtomicUsize, atomic::Ordering};
use std::{fs, path::Path, process::Command, time::Duration, time::Instant};

use countersign_core::log::checkpoint::{Checkpoint, WitnessRequest};
use countersign_core::log::tree::{Tree, leaf_hash};
use countersign_log::{CheckpointSigner, CosignRefusal, LogReplay, LogWitness, MlDsaSecret};
use countersign_store::{Disk, DiskStep, Moment};
use countersign_testing::await_until;
use tempfile::TempDir;

use crate::support::{Fixture, ORIGIN, complete, log_key, publish, register, revoke, witness};

/// Set for the process that dies.
const DIR: &str = "COUNTERSIGN_TEST_WITNESS_DIR";
const DIES_AFTER: &str = "COUNTERSIGN_TEST_WITNESS_STEP";
/// Behind the signing: before and after what a crash left is removed, and after the new record was written, synced and
/// renamed, and its directory synced.
const STEPS: usize = 6;
const NOW: u64 = 1_700_000_000;

/// A witness that knows no log.
fn open_empty(dir: &Path) -> LogWitness {
    LogWitness::open(dir, vec![witness(1).signer()]).unwrap()
}

fn open(dir: &Path) -> LogWitness {
    let opened = open_empty(dir);
    opened.add_log(vec![log_key().public]).unwrap();
    opened
}

/// The one log that the witness has stopped for, with the evidence on disk.
fn evidence(witness: &LogWitness, dir: &Path) -> String {
    let stops = witness.stops();
    let [stop] = stops.as_slice() else { panic!("{stops:?}") };
    fs::read_to_string(dir.join(&stop.evidence)).unwrap()
}

/// Logs with the same first five leaves.
fn tree(word: &str) -> Tree {
    let mut tree = Tree::default();
    (0..5).for_each(|leaf| tree.push(leaf_hash(format!("shared {leaf}").as_bytes())));
    (5..9).for_each(|leaf| tree.push(leaf_hash(format!("{word} {leaf}").as_bytes())));
    tree
}

fn request(tree: &Tree, old: u64, size: u64) -> WitnessRequest {
    let checkpoint = Checkpoint { origin: ORIGIN.to_owned(), size, root: tree.root(size).unwrap() };
    let note = checkpoint.sign(&log_key().public, &log_key().secret).log_note();
    WitnessRequest { old, proof: tree.consistency(old, size).unwrap(), note }
}

/// Not a test of its own: what the process does that the next test starts.
#[test]
fn cosign_and_die() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dies_after: usize = std::env::var(DIES_AFTER).unwrap().parse().unwrap();
    let (is_asked, steps) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
    let counts = Arc::clone(&is_asked);
    let disk = Disk::with_fault(Arc::new(move |step, moment, _| {
        let is_step = moment == Moment::After || (step, moment) == (DiskStep::Remove, Moment::Before);
        if is_step && counts.load(Ordering::SeqCst) && steps.fetch_add(1, Ordering::SeqCst) + 1 == dies_after
        {
            let own = std::process::id().to_string();
            Command::new("kill").args(["-9", &own]).status().unwrap();
        }
        Ok(())
    }));
    let witness = LogWitness::open_on(disk, Path::new(&dir), vec![witness(1).signer()]).unwrap();
    witness.add_log(vec![log_key().public]).unwrap();
    is_asked.store(true, Ordering::SeqCst);
    let cosigned = witness.add_checkpoint(&request(&tree("honest"), 5, 8), NOW).unwrap();
    fs::write(Path::new(&dir).join("answer"), cosigned[0].line.to_string()).unwrap();
}

#[test]
fn a_kill_between_two_steps_leaves_the_old_record_or_the_new_one() {
    for dies_after in 1..=STEPS + 1 {
        let dir = TempDir::new().unwrap();
        open(dir.path()).add_checkpoint(&request(&tree("honest"), 0, 5), NOW).unwrap();
        let died = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "witness::cosign_and_die"])
            .env(DIR, dir.path())
            .env(DIES_AFTER, dies_after.to_string())
            .output()
            .unwrap();
        let has_answered = dir.path().join("answer").exists();
        assert_eq!(died.status.success(), dies_after > STEPS, "{dies_after}: {died:?}");
        assert_eq!(has_answered, dies_after > STEPS, "no answer before the last step");
        let witness = open(dir.path());
        let record = match witness.add_checkpoint(&request(&tree("honest"), 1, 9), NOW) {
            Err(CosignRefusal::OtherSize(size)) => size,
            other => panic!("{other:?}"),
        };
        // The fifth step renames.
        assert_eq!(record, if dies_after < 5 { 5 } else { 8 }, "after step {dies_after}");
        let fork = witness.add_checkpoint(&request(&tree("other"), record, 8), NOW + 1);
        match (record, fork) {
            // No one has seen a cosignature of the first one.
            (5, Ok(_)) => {}
            (8, Err(CosignRefusal::OtherRoot(8))) => {}
            (_, other) => panic!("after step {dies_after}: {other:?}"),
        }
    }
}

#[test]
fn a_record_that_cannot_be_read_stops_the_witness() {
    let dir = TempDir::new().unwrap();
    open(dir.path()).add_checkpoint(&request(&tree("honest"), 0, 5), NOW).unwrap();
    let origin = countersign_core::values::digest::Sha256::of(ORIGIN.as_bytes()).to_string();
    let record = dir.path().join(origin);
    let text = fs::read_to_string(&record).unwrap();
    for damage in [String::new(), text.replace("\n5\n", "\n4\n"), text[..text.len() / 2].to_owned()] {
        fs::write(&record, damage).unwrap();
        assert!(open_empty(dir.path()).add_log(vec![log_key().public]).is_err());
    }
}

#[test]
fn an_agent_that_signs_something_else_is_found_out() {
    let dir = TempDir::new().unwrap();
    let (own, other) = (witness(1), witness(2));
    let signer = CheckpointSigner::elsewhere(own.public, move |text| {
        let digest = countersign_core::values::digest::Sha512::of(text.as_bytes());
        Ok(other.secret.sign(&digest))
    });
    let witness = LogWitness::open(dir.path(), vec![signer]).unwrap();
    witness.add_log(vec![log_key().public]).unwrap();
    let refused = witness.add_checkpoint(&request(&tree("honest"), 0, 5), NOW);
    assert!(matches!(refused, Err(CosignRefusal::Signer(_))), "{refused:?}");
}

/// The ML-DSA-44 key of the seed from 60 to 7f.
fn ml_dsa() -> MlDsaSecret {
    MlDsaSecret::from_seed(&std::array::from_fn(|n| 0x60 + u8::try_from(n).unwrap()))
}

#[test]
fn a_witness_signs_with_each_of_its_keys_at_one_time_that_never_goes_back() {
    let dir = TempDir::new().unwrap();
    let own = witness(1);
    let second = CheckpointSigner::with_ml_dsa(own.public.name(), ml_dsa()).unwrap();
    let keys = [own.public.clone(), second.key().clone()];
    let first = || witness(1).signer();
    let open = |signers| {
        let opened = LogWitness::open(dir.path(), signers).unwrap();
        opened.add_log(vec![log_key().public]).unwrap();
        opened
    };
    let ask =
        |signers, old, size, now| open(signers).add_checkpoint(&request(&tree("honest"), old, size), now);
    let cosigned = ask(vec![first(), second.clone()], 0, 5, NOW).unwrap();
    let said: Vec<_> = cosigned.iter().map(|by| (by.witness.clone(), by.time)).collect();
    assert_eq!(said, keys.clone().map(|key| (key, NOW)));
    // Anyone who knows one of the keys can verify it, and the record has both.
    let mut note = request(&tree("honest"), 0, 5).note;
    cosigned.iter().for_each(|by| note.add(by.line.clone()));
    for key in &keys {
        let signers = note.signers(std::slice::from_ref(key)).unwrap();
        assert_eq!((signers.len(), signers[0].time), (1, Some(NOW)));
    }
    let origin = countersign_core::values::digest::Sha256::of(ORIGIN.as_bytes());
    assert_eq!(open(vec![first(), second.clone()]).checkpoint_of(&origin).unwrap(), Some(note.to_string()));
    // With a key fewer or more, and a clock that is behind.
    for (signers, count) in [(vec![second.clone()], 1), (vec![first(), second.clone()], 2)] {
        let cosigned = ask(signers, 5, 5, NOW - 60).unwrap();
        assert_eq!((cosigned.len(), cosigned[0].time), (count, NOW));
    }
    let refused = ask(vec![second], 5, 5, NOW - 121);
    assert!(matches!(refused, Err(CosignRefusal::ClockBehind { .. })), "{refused:?}");
}

/// Python's `cryptography` has verified it: `tests/oracle/ml_dsa.py` of core.
#[test]
fn an_ml_dsa_key_signs_what_another_program_has_verified() {
    let vectors = include_str!("../../../core/tests/vectors/cosignature/ml-dsa-44.json");
    let signer = CheckpointSigner::with_ml_dsa("witness.example/w", ml_dsa()).unwrap();
    let dir = TempDir::new().unwrap();
    let witness = LogWitness::open(dir.path(), vec![signer.clone()]).unwrap();
    witness.add_log(vec![log_key().public]).unwrap();
    let request = request(&tree("honest"), 0, 5);
    let cosigned = witness.add_checkpoint(&request, NOW).unwrap();
    let note = format!("{}\n{}", request.note.text(), cosigned[0].line);
    for text in [signer.key().to_string(), note] {
        let spelled = text.replace('\n', "\\n");
        assert!(vectors.contains(&format!("\"{spelled}\"")), "{spelled}");
    }
}

/// A witness that follows the store of `fixture`, and what it has replayed.
fn replaying_witness(fixture: &Fixture, dir: &Path) -> (LogWitness, LogReplay) {
    let replay = LogReplay::start(fixture.store(), &dir.join("replay"), log_key().public).unwrap();
    let witness = open_empty(dir);
    witness.add_replay(replay.clone()).unwrap();
    (witness, replay)
}

fn await_size(replay: &LogReplay, size: u64) {
    await_until("a replay", || replay.size() >= size);
}

/// A request with the root that the journal gives.
fn honest_request(replay: &LogReplay, old: u64, size: u64) -> WitnessRequest {
    let checkpoint = Checkpoint { origin: ORIGIN.to_owned(), size, root: replay.root_at(size).unwrap() };
    let note = checkpoint.sign(&log_key().public, &log_key().secret).log_note();
    WitnessRequest { old, proof: Vec::new(), note }
}

#[test]
fn a_log_that_hides_commits_of_its_journal_gets_no_cosignature() {
    let fixture = Fixture::new();
    let release = "https/a.example/443/one/releases/v1";
    for change in [register("https/a.example/443/one"), publish(release), complete(release)] {
        fixture.commit(change);
    }
    let dir = TempDir::new().unwrap();
    let (witness, replay) = replaying_witness(&fixture, dir.path());
    let ask = |old, size| witness.add_checkpoint(&honest_request(&replay, old, size), NOW);
    await_size(&replay, 4);
    ask(0, 4).unwrap();
    fixture.commit(revoke(release));
    await_size(&replay, 5);
    ask(4, 4).unwrap();
    // As if the revocation had been there for two minutes.
    let long_ago = Instant::now().checked_sub(Duration::from_secs(121)).expect("the machine has run so long");
    replay.note_size(long_ago);
    let refused = ask(4, 4);
    assert!(matches!(refused, Err(CosignRefusal::Withheld { size: 4 })), "{refused:?}");
    assert!(!replay.has_withheld(4, long_ago + Duration::from_secs(120)), "not earlier");
    assert!(!replay.has_withheld(5, Instant::now()), "a checkpoint that covers it");
}

#[test]
fn a_longer_fork_is_found_out_when_the_journal_comes_so_far() {
    let fixture = Fixture::new();
    let dir = TempDir::new().unwrap();
    let (witness, replay) = replaying_witness(&fixture, dir.path());
    await_size(&replay, 1);
    witness.add_checkpoint(&honest_request(&replay, 0, 1), NOW).unwrap();
    // Its first commit is another one, which the proof cannot hide.
    let refused = witness.add_checkpoint(&request(&tree("fork"), 1, 3), NOW);
    assert!(matches!(refused, Err(CosignRefusal::BadProof)), "{refused:?}");
    assert!(witness.stops().is_empty(), "a wrong proof proves nothing yet");
    fixture.commit(register("https/a.example/443/one"));
    fixture.commit(publish("https/a.example/443/one/releases/v1"));
    await_size(&replay, 3);
    let refused = witness.check(&honest_request(&replay, 1, 3).note);
    assert!(matches!(refused, Err(CosignRefusal::OtherRoot(3))), "{refused:?}");
    let evidence = evidence(&witness, dir.path());
    for note in [request(&tree("fork"), 1, 3).note, honest_request(&replay, 1, 3).note] {
        assert!(evidence.contains(&note.to_string()), "{evidence}");
    }
    let refused = witness.add_checkpoint(&honest_request(&replay, 1, 1), NOW);
    assert!(matches!(refused, Err(CosignRefusal::Stopped(_))), "{refused:?}");
}

#[test]
fn a_longer_fork_that_its_own_proof_shows_is_kept_at_once() {
    let dir = TempDir::new().unwrap();
    let mut witness = open(dir.path());
    witness.add_checkpoint(&request(&tree("honest"), 0, 6), NOW).unwrap();
    // Strangers cannot make such a proof of what is honest.
    let mut wrong = request(&tree("honest"), 6, 8);
    wrong.proof[0] = leaf_hash(b"x");
    let refused = witness.add_checkpoint(&wrong, NOW);
    assert!(matches!(refused, Err(CosignRefusal::BadProof)), "{refused:?}");
    assert!(witness.stops().is_empty());
    let fork = request(&tree("fork"), 6, 9);
    let refused = witness.add_checkpoint(&fork, NOW);
    assert!(matches!(refused, Err(CosignRefusal::OtherRoot(6))), "{refused:?}");
    for _ in 0..2 {
        let evidence = evidence(&witness, dir.path());
        for note in [&fork.note, &request(&tree("honest"), 0, 6).note] {
            assert!(evidence.contains(&note.to_string()), "{evidence}");
        }
        assert!(evidence.contains(&fork.write()), "with the proof: {evidence}");
        witness = open(dir.path());
    }
}

#[test]
fn a_longer_fork_that_nothing_shows_yet_is_remembered() {
    let dir = TempDir::new().unwrap();
    // A tree of four leaves is where each proof begins, so none shows another one.
    let mut fork = Tree::default();
    (0..9).for_each(|leaf| fork.push(leaf_hash(format!("fork {leaf}").as_bytes())));
    open(dir.path()).add_checkpoint(&request(&tree("honest"), 0, 4), NOW).unwrap();
    let refused = open(dir.path()).add_checkpoint(&request(&fork, 4, 7), NOW);
    assert!(matches!(refused, Err(CosignRefusal::BadProof)), "{refused:?}");
    // After a restart the honest one of the same size tells.
    let witness = open(dir.path());
    assert!(witness.stops().is_empty());
    let refused = witness.add_checkpoint(&request(&tree("honest"), 4, 7), NOW);
    assert!(matches!(refused, Err(CosignRefusal::OtherRoot(7))), "{refused:?}");
    let evidence = evidence(&witness, dir.path());
    for note in [request(&fork, 4, 7).note, request(&tree("honest"), 4, 7).note] {
        assert!(evidence.contains(&note.to_string()), "{evidence}");
    }
}

#[test]
fn the_time_of_a_witness_never_goes_back() {
    let dir = TempDir::new().unwrap();
    let honest = tree("honest");
    let ask = |old, size, now| open(dir.path()).add_checkpoint(&request(&honest, old, size), now);
    assert_eq!(ask(0, 5, NOW).unwrap()[0].time, NOW);
    // A clock that is a little behind: the same time again, for the same tree and for a larger one.
    assert_eq!(ask(5, 5, NOW - 1).unwrap()[0].time, NOW);
    assert_eq!(ask(5, 7, NOW - 120).unwrap()[0].time, NOW);
    assert_eq!(ask(7, 8, NOW - 119).unwrap()[0].time, NOW);
    for (old, size) in [(8, 8), (8, 9)] {
        let refused = ask(old, size, NOW - 121);
        assert!(matches!(refused, Err(CosignRefusal::ClockBehind { last: NOW, .. })), "{refused:?}");
    }
    assert_eq!(ask(8, 9, NOW + 1).unwrap()[0].time, NOW + 1);
}

#[test]
fn a_log_that_will_be_replayed_is_known_before_and_not_cosigned() {
    let fixture = Fixture::new();
    let dir = TempDir::new().unwrap();
    let (first, replay) = replaying_witness(&fixture, dir.path());
    await_size(&replay, 1);
    first.add_checkpoint(&honest_request(&replay, 0, 1), NOW).unwrap();
    let restarted = open_empty(dir.path());
    restarted.expect_replay(&log_key().public).unwrap();
    let origin = countersign_core::values::digest::Sha256::of(ORIGIN.as_bytes());
    let shown = restarted.checkpoint_of(&origin).unwrap().unwrap();
    assert!(shown.contains(witness(1).public.name()), "{shown}");
    let other_size = restarted.add_checkpoint(&honest_request(&replay, 0, 1), NOW);
    assert!(matches!(other_size, Err(CosignRefusal::OtherSize(1))), "{other_size:?}");
    let refused = restarted.add_checkpoint(&honest_request(&replay, 1, 1), NOW);
    assert!(matches!(refused, Err(CosignRefusal::NotReplayed { size: 1, replayed: 0 })), "{refused:?}");
    restarted.add_replay(replay.clone()).unwrap();
    restarted.add_checkpoint(&honest_request(&replay, 1, 1), NOW).unwrap();
    // One that does not even know the key yet says so.
    let empty = TempDir::new().unwrap();
    let fresh = open_empty(empty.path());
    fresh.expect_key();
    let refused = fresh.add_checkpoint(&honest_request(&replay, 0, 1), NOW);
    assert!(matches!(refused, Err(CosignRefusal::NotKnownYet)), "{refused:?}");
    assert!(matches!(fresh.checkpoint_of(&origin), Err(CosignRefusal::NotKnownYet)));
    fresh.add_replay(replay.clone()).unwrap();
    assert!(matches!(fresh.checkpoint_of(&origin), Ok(None)));
    fresh.add_checkpoint(&honest_request(&replay, 0, 1), NOW).unwrap();
}
