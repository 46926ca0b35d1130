//! What the log signs, when, and what it refuses to sign.

use std::sync::{Arc, atomic::AtomicBool, atomic::AtomicUsize, atomic::Ordering};
use std::{fs, time::Duration};

use countersign_core::log::note::NoteSignature;
use countersign_core::values::key::{Signature, decode_padded_base64};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_log::{
    CheckpointFiles, CheckpointKeeper, CheckpointMinute, CheckpointSigner, CosignError, KeepError, KeptNotes,
    LogOptions, LogRefusal, MAX_WAITING, NoStaple, RECENT_MINUTES, RecentLog, TransparencyLog,
};
use countersign_testing::{assert_mentions, copy_dir};

use crate::support::{Fixture, index, log_key, policy, publish, refusal, register, wait_for, witness};

#[test]
fn a_restored_older_repository_signs_nothing_until_it_has_the_missing_commits() {
    let mut fixture = Fixture::new();
    fixture.fill();
    let before = fixture.dir.path().join("before.git");
    fixture.close();
    copy_dir(&fixture.repository(), &before);
    fixture.open();
    let log = fixture.start_log();
    fixture.commit(register("https/b.example/443/three"));
    let signed = fixture.wait_for_all(&log);
    drop(log);
    let after = fixture.dir.path().join("after.git");
    fixture.close();
    copy_dir(&fixture.repository(), &after);
    fixture.replace_repository(&before);

    let log = fixture.start_log();
    assert_eq!(refusal(&log), LogRefusal::Behind { signed: 26, size: 25 });
    let message = refusal(&log).to_string();
    assert_mentions(&message, &["26 commits", "repository has 25", "mirror", "--data-dir"]);
    let kept = fs::read_to_string(fixture.log_dir().join("checkpoint")).unwrap();
    assert_eq!(log.checkpoint_note().unwrap().as_str(), kept, "what was signed stays true");
    assert_eq!(kept, signed.note().to_string());
    let release = index("https/a.example/443/one/releases/v4");
    let refused = log.staple(|| fixture.store().head(), &release).1.unwrap_err();
    assert!(matches!(refused, NoStaple::Stopped(_)), "{refused}");
    // Everything else goes on. A commit of its own makes it a fork.
    fixture.commit(publish("https/b.example/443/other/releases/v1"));
    drop(log);
    let log = fixture.start_log();
    assert_eq!(refusal(&log), LogRefusal::Forked { signed: 26 });
    assert_mentions(&refusal(&log).to_string(), &["does not continue the newest checkpoint"]);
    fixture.commit(publish("https/b.example/443/other/releases/v2"));
    wait_for(&log, |log| (log.figures().size == 27).then_some(()));
    assert_eq!(fs::read_to_string(fixture.log_dir().join("checkpoint")).unwrap(), kept);
    drop(log);

    // With the commits that were missing, it goes on.
    fixture.replace_repository(&after);
    let log = fixture.start_log();
    fixture.commit(publish("https/b.example/443/three/releases/v1"));
    let newest = fixture.wait_for_all(&log);
    assert_eq!(newest.checkpoint().size, 27);
    assert!(log.trouble().is_none());
}

#[test]
fn a_checkpoint_of_another_key_or_origin_stops_the_log() {
    let fixture = Fixture::new();
    let log = fixture.start_log();
    fixture.wait_for_all(&log);
    drop(log);
    for origin in ["sign.example.org/log", "sign.example.org/other"] {
        let secret = countersign_core::values::key::SecretKey::from_seed(&[9; 32]);
        let key = VerifierKey::new(origin, KeyKind::Log, secret.public_key()).unwrap();
        let options =
            LogOptions { signer: Arc::new(CheckpointSigner::with_key(key, secret)), ..fixture.options() };
        let log = TransparencyLog::start(fixture.store(), options).unwrap();
        let trouble = wait_for(&log, TransparencyLog::trouble).to_string();
        assert_mentions(&trouble, &["log/checkpoint", origin, "move the old checkpoint away"]);
        assert!(log.newest_checkpoint().is_none());
    }
    // A damaged file is no checkpoint either.
    fixture.flip("checkpoint", 30);
    let log = fixture.start_log();
    wait_for(&log, TransparencyLog::trouble);
    fixture.flip("checkpoint", 30);
    // No restart is needed once it is right.
    fixture.wait_for_all(&log);
    wait_for(&log, |log| log.trouble().is_none().then_some(()));
}

#[test]
fn checkpoints_are_apart_and_a_heartbeat_repeats_the_newest() {
    let fixture = Fixture::new();
    let options = LogOptions {
        checkpoint_every: Duration::from_secs(3_600),
        heartbeat_every: Duration::from_millis(10),
        ..fixture.options()
    };
    let log = TransparencyLog::start(fixture.store(), options).unwrap();
    fixture.wait_for_all(&log);
    let first = *log.rounds().borrow();
    wait_for(&log, |log| (log.rounds().borrow().round >= first.round + 3).then_some(()));
    assert_eq!(log.rounds().borrow().size, 1);
    fixture.commit(register("https/b.example/443/three"));
    wait_for(&log, |log| (log.figures().size == 2).then_some(()));
    assert_eq!(log.newest_checkpoint().unwrap().checkpoint().size, 1, "the hour is not over");
}

/// Fails as told, before or after it has kept a checkpoint.
#[derive(Debug)]
struct FailingKeeper {
    files: CheckpointFiles,
    fails: Arc<AtomicBool>,
    is_kept: bool,
    failures: Arc<AtomicUsize>,
}

impl CheckpointKeeper for FailingKeeper {
    fn load(&mut self) -> Result<KeptNotes, KeepError> {
        self.files.load()
    }

    fn location(&self) -> String {
        self.files.location()
    }

    fn keep_newest(&mut self, before: u64, note: &str) -> Result<(), KeepError> {
        if !self.fails.load(Ordering::Acquire) {
            return self.files.keep_newest(before, note);
        }
        if self.is_kept {
            self.files.keep_newest(before, note)?;
        }
        self.failures.fetch_add(1, Ordering::AcqRel);
        Err(KeepError::Overtaken)
    }

    fn keep_cosigned(&mut self, note: &str) -> Result<(), KeepError> {
        self.files.keep_cosigned(note)
    }
}

#[test]
fn no_one_sees_a_checkpoint_that_is_not_stored() {
    for is_kept in [false, true] {
        let fixture = Fixture::new();
        let (fails, failures) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let keeper = FailingKeeper {
            files: CheckpointFiles::new(&fixture.log_dir()),
            fails: Arc::clone(&fails),
            is_kept,
            failures: Arc::clone(&failures),
        };
        let options = LogOptions { keeper: Box::new(keeper), ..fixture.options() };
        let log = TransparencyLog::start(fixture.store(), options).unwrap();
        let first = fixture.wait_for_all(&log);
        fails.store(true, Ordering::Release);
        fixture.commit(register("https/b.example/443/three"));
        wait_for(&log, |_| (failures.load(Ordering::Acquire) > 0).then_some(()));
        assert_eq!(log.newest_checkpoint(), Some(first.clone()));
        assert_eq!(log.checkpoint_note().unwrap().as_str(), first.note().to_string());
        assert!(wait_for(&log, TransparencyLog::trouble).to_string().contains("another node"));
        drop(log);
        // It died there. What is on disk counts, and nothing goes back.
        let log = fixture.start_log();
        assert_eq!(fixture.wait_for_all(&log).checkpoint().size, 2);
    }
}

#[test]
fn a_signer_that_fails_or_lies_signs_nothing() {
    let fixture = Fixture::new();
    let answers = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&answers);
    let key = log_key();
    let signer = CheckpointSigner::elsewhere(key.public.clone(), move |text| {
        match asked.fetch_add(1, Ordering::AcqRel) {
            0 => Err("the agent is locked".to_owned()),
            1 => Ok(Signature::from_bytes([1; 64])),
            _ => {
                let line = NoteSignature::sign(text, &key.public, &key.secret, 0).to_string();
                let encoded = decode_padded_base64(line.trim().rsplit_once(' ').unwrap().1).unwrap();
                let bytes: [u8; 64] = encoded[4..].try_into().unwrap();
                Ok(Signature::from_bytes(bytes))
            }
        }
    });
    let options = LogOptions { signer: Arc::new(signer), ..fixture.options() };
    let log = TransparencyLog::start(fixture.store(), options).unwrap();
    let trouble = wait_for(&log, TransparencyLog::trouble).to_string();
    assert_mentions(&trouble, &["key cannot sign", "the agent is locked"]);
    assert!(log.newest_checkpoint().is_none());
    fixture.wait_for_all(&log);
    assert_eq!(answers.load(Ordering::Acquire), 3);
}

#[test]
fn only_cosignatures_of_known_witnesses_and_waiting_checkpoints_are_accepted() {
    let fixture = Fixture::new();
    let (one, two, stranger) = (witness(1), witness(2), witness(3));
    let options = LogOptions { policy: Some(policy(2, &[&one, &two])), ..fixture.options() };
    let log = TransparencyLog::start(fixture.store(), options).unwrap();
    let first = fixture.wait_for_all(&log);
    let line = |who: &crate::support::NamedKey, time| first.cosign(&who.public, &who.secret, time).line;
    let add = |size, line: NoteSignature| log.add_cosignatures(size, &[line]);
    assert!(matches!(add(1, line(&stranger, 7)), Err(CosignError::UnknownWitness)));
    assert!(matches!(add(2, line(&one, 7)), Err(CosignError::NotWaiting(2))));
    // A known witness whose signature is of another text.
    let other = NoteSignature::sign("another text\n", &one.public, &one.secret, 7);
    assert!(matches!(add(1, other), Err(CosignError::Note(_))));
    assert_eq!(log.newest_checkpoint().unwrap(), first);
    add(1, line(&one, 7)).unwrap();
    let kept = fs::read_to_string(fixture.log_dir().join("checkpoint")).unwrap();
    assert_mentions(&kept, &["witness-1.example"]);
    // Anyone can send it again. That writes nothing.
    fs::remove_file(fixture.log_dir().join("checkpoint")).unwrap();
    add(1, line(&one, 7)).unwrap();
    assert!(!fixture.log_dir().join("checkpoint").exists());
    // The checkpoints that wait are bounded. The oldest go.
    for number in 0..MAX_WAITING {
        fixture.commit(publish(&format!("https/b.example/443/x/releases/v{number}")));
        fixture.wait_for_all(&log);
    }
    assert!(matches!(add(1, line(&two, 7)), Err(CosignError::NotWaiting(1))));
    assert!(log.cosigned_checkpoint().is_none());
}

#[test]
fn a_change_does_not_wait_for_the_log() {
    let fixture = Fixture::new();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let key = log_key();
    let (asked, begun) = std::sync::mpsc::channel();
    let signer = CheckpointSigner::elsewhere(key.public.clone(), move |_| {
        let _ = asked.send(());
        // A signer that does not answer, until the test lets it.
        let _ = held.lock().map(|held| held.recv());
        Err("too late".to_owned())
    });
    let options = LogOptions { signer: Arc::new(signer), ..fixture.options() };
    let log = TransparencyLog::start(fixture.store(), options).unwrap();
    begun.recv().unwrap();
    for number in 0..40 {
        fixture.commit(publish(&format!("https/b.example/443/x/releases/v{number}")));
    }
    assert_eq!(log.figures().size, 1, "the log still waits");
    assert_eq!(fixture.commits(), 41);
    drop(release);
    wait_for(&log, |log| (log.figures().size == 41).then_some(()));
}

#[test]
fn the_last_hour_is_sixty_minutes_however_long_the_log_runs() {
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let mut recent = RecentLog::default();
    for minute in 0..200 {
        recent.note_made(minute, minutes(minute));
        recent.note_round(minutes(minute) + Duration::from_secs(59));
        assert!(recent.minutes.len() <= RECENT_MINUTES);
    }
    assert_eq!(recent.newest, Some((199, minutes(199))));
    assert_eq!((recent.minutes.len(), recent.minutes[0].minute), (RECENT_MINUTES, 140));
    recent.note_cosigned(minutes(230));
    let last = CheckpointMinute { minute: 230, has_new: false, is_cosigned: true };
    assert_eq!((recent.minutes[0].minute, recent.minutes.back()), (171, Some(&last)));
    // The clock was set back.
    recent.note_round(minutes(100));
    assert_eq!(recent.minutes.len(), 1);
}
