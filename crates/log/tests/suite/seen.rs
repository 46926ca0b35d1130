//! What witnesses have seen outlives a restart and new commits (D190, D208).

use std::fs;

use countersign_core::documents::transparency::WitnessGroup;
use countersign_core::log::{
    checkpoint::Checkpoint, checkpoint::SignedCheckpoint, note::Note, policy::Policy,
};
use countersign_core::values::bounds::LOST_HEADS;
use countersign_log::{AcceptLossError, LogOptions, LogRefusal, TakeError, TransparencyLog};
use countersign_testing::{assert_mentions, copy_dir, ml_dsa_key};

use crate::support::{
    Fixture, NamedKey, ORIGIN, log_key, policy, publish, refusal, register, wait_for, witness,
};

fn options(fixture: &Fixture, threshold: usize, witnesses: &[&NamedKey]) -> LogOptions {
    LogOptions { policy: Some(policy(threshold, witnesses)), ..fixture.options() }
}

fn start(fixture: &Fixture, threshold: usize, witnesses: &[&NamedKey]) -> TransparencyLog {
    TransparencyLog::start(fixture.store(), options(fixture, threshold, witnesses)).unwrap()
}

fn name(witness: &NamedKey) -> String {
    format!("the witness {}", witness.public.name())
}

/// A server and a copy of its data directory, from before the last two commits of the server.
struct Restored {
    /// The copy, with 25 commits, all of them signed.
    copy: Fixture,
    /// What the original has signed: 27 commits.
    newest: SignedCheckpoint,
    /// The repository of the original.
    repository: std::path::PathBuf,
}

fn restore(witness: &NamedKey) -> Restored {
    let mut fixture = Fixture::new();
    fixture.fill();
    let log = start(&fixture, 1, &[witness]);
    fixture.wait_for_all(&log);
    drop(log);
    fixture.close();
    let dir = fixture.dir.path().to_owned();
    let (before, after) = (dir.join("before"), dir.join("after.git"));
    copy_dir(&fixture.repository(), &before.join("repo.git"));
    copy_dir(&fixture.log_dir(), &before.join("log"));
    fixture.open();
    let log = start(&fixture, 1, &[witness]);
    fixture.commit(register("https/b.example/443/three"));
    fixture.commit(publish("https/b.example/443/three/releases/v1"));
    let newest = fixture.wait_for_all(&log);
    drop(log);
    fixture.close();
    fs::rename(fixture.repository(), &after).unwrap();
    fs::remove_dir_all(fixture.log_dir()).unwrap();
    fs::rename(before.join("repo.git"), fixture.repository()).unwrap();
    fs::rename(before.join("log"), fixture.log_dir()).unwrap();
    fixture.open();
    assert_eq!(newest.checkpoint().size, 27);
    Restored { copy: fixture, newest, repository: after }
}

/// A copy whose log has heard from the witness that there were 27 commits.
fn warned(one: &NamedKey, shows: bool) -> (Restored, TransparencyLog) {
    let restored = restore(one);
    let log = start(&restored.copy, 1, &[one]);
    restored.copy.wait_for_all(&log);
    if shows {
        log.take_checkpoint(&restored.newest.note(), &name(one)).unwrap();
    }
    log.note_answered(&one.public, 27).unwrap();
    (restored, log)
}

/// More commits of the copy's own than are missing.
fn grow(fixture: &Fixture, log: &TransparencyLog) {
    let begin = fixture.commits();
    for number in begin..begin + 5 {
        fixture.commit(publish(&format!("https/c.example/443/own/releases/v{number}")));
    }
    wait_for(log, |log| (log.figures().size == begin + 5).then_some(()));
}

#[test]
fn a_restored_copy_signs_nothing_however_much_it_grows_and_however_often_it_starts() {
    let one = witness(1);
    // The witness shows the checkpoint, or only says its size.
    for shows in [true, false] {
        let (Restored { copy, .. }, log) = warned(&one, shows);
        assert_eq!(refusal(&log), LogRefusal::BehindWitness { witness: name(&one), seen: 27, size: 25 });
        grow(&copy, &log);
        drop(log);
        for _ in 0..2 {
            // Now without the word of the witness, and with signing allowed.
            let log = start(&copy, 1, &[&one]);
            assert!(log.refusal().is_some(), "from the first moment on");
            let refused = refusal(&log);
            let size = copy.commits();
            match shows {
                true => assert_eq!(refused, LogRefusal::ForkedWitness { witness: name(&one), seen: 27 }),
                false => assert_eq!(refused, LogRefusal::UnknownRoot { witness: name(&one), seen: 27, size }),
            }
            assert_mentions(&refused.to_string(), &["27 commits", "mirror", "accept-loss --help"]);
            grow(&copy, &log);
            // The witness was set back as well, or says that it was wrong.
            log.note_answered(&one.public, 25).unwrap();
            grow(&copy, &log);
            let figures = log.figures();
            assert_eq!((figures.signed_size, figures.lost_size), (25, 27));
            assert_eq!(log.newest_checkpoint().unwrap().checkpoint().size, 25);
        }
    }
}

#[test]
fn a_witness_with_two_keys_answers_for_both() {
    let (one, two) = (witness(1), witness(2));
    let second = ml_dsa_key(one.public.name(), 9);
    let Restored { copy, .. } = restore(&one);
    let keys = vec![one.public.clone(), second.clone(), two.public.clone()];
    let both = Policy::of_groups(log_key().public, &[WitnessGroup::new(2, keys)]).unwrap();
    let options = LogOptions { policy: Some(both), ..copy.options() };
    let log = TransparencyLog::start(copy.store(), options).unwrap();
    wait_for(&log, |log| (log.figures().size == 25).then_some(()));
    // One of two may lie. The other one, which has said nothing yet, may have seen as much.
    log.note_answered(&two.public, 27).unwrap();
    assert_eq!(refusal(&log), LogRefusal::BehindWitness { witness: name(&two), seen: 27, size: 25 });
    log.note_answered(&second, 25).unwrap();
    wait_for(&log, |log| log.trouble().is_none().then_some(()));
    // What it says with one key, it takes back with the other.
    log.note_answered(&one.public, 27).unwrap();
    assert!(matches!(refusal(&log), LogRefusal::BehindWitness { seen: 27, .. }));
    assert!(!log.has_cosigned(&second));
}

#[test]
fn with_the_missing_commits_it_goes_on() {
    let one = witness(1);
    for shows in [true, false] {
        let (Restored { mut copy, newest, repository }, log) = warned(&one, shows);
        refusal(&log);
        drop(log);
        copy.replace_repository(&repository);
        let log = start(&copy, 1, &[&one]);
        if !shows {
            // The size alone does not say whether these are the ones.
            assert!(matches!(refusal(&log), LogRefusal::UnknownRoot { seen: 27, size: 27, .. }));
            let older = log.take_checkpoint(&log.newest_checkpoint().unwrap().note(), "the operator");
            assert!(matches!(older, Err(TakeError::NotNewer { size: 25, known: 25 })), "{older:?}");
            log.take_checkpoint(&newest.log_note(), "the operator").unwrap();
        }
        assert_eq!(copy.wait_for_all(&log).checkpoint(), newest.checkpoint());
        wait_for(&log, |log| log.refusal().is_none().then_some(()));
        copy.commit(publish("https/b.example/443/three/releases/v2"));
        assert_eq!(copy.wait_for_all(&log).checkpoint().size, 28);
    }
    // What a mirror has copied is as good.
    let Restored { copy, newest, .. } = restore(&one);
    let options =
        LogOptions { copied: Some(newest.note().to_string().into_bytes()), ..options(&copy, 1, &[&one]) };
    let log = TransparencyLog::start(copy.store(), options).unwrap();
    let expected = LogRefusal::BehindWitness { witness: "a mirror".to_owned(), seen: 27, size: 25 };
    assert_eq!(refusal(&log), expected);
}

#[test]
fn the_operator_can_give_up_what_is_lost_and_must_name_it() {
    let one = witness(1);
    let Restored { copy, newest, .. } = restore(&one);
    let log = start(&copy, 1, &[&one]);
    copy.wait_for_all(&log);
    assert!(matches!(log.accept_loss(ORIGIN, 25), Err(AcceptLossError::NothingLost)));
    log.take_checkpoint(&newest.note(), &name(&one)).unwrap();
    log.note_answered(&one.public, 27).unwrap();
    refusal(&log);
    grow(&copy, &log);
    let wrong = log.accept_loss("sign.example.org/other", 27);
    assert!(matches!(wrong, Err(AcceptLossError::OtherOrigin(ref name)) if name == ORIGIN), "{wrong:?}");
    let wrong = log.accept_loss(ORIGIN, 26);
    assert!(matches!(wrong, Err(AcceptLossError::OtherSize(27))), "{wrong:?}");
    let lost: Vec<Note> = log.accept_loss(ORIGIN, 27).unwrap();
    assert_eq!(lost, [newest.log_note()]);
    assert_eq!(copy.wait_for_all(&log).checkpoint().size, 30);
    // The same evidence does not stop it again. More is more.
    log.note_answered(&one.public, 27).unwrap();
    drop(log);
    let log = start(&copy, 1, &[&one]);
    copy.wait_for_all(&log);
    assert!(log.refusal().is_none());
    log.note_answered(&one.public, 31).unwrap();
    assert_eq!(refusal(&log).lost_size(), Some(31));
}

#[test]
fn what_the_log_itself_remembers_can_be_given_up_as_well() {
    let one = witness(1);
    let Restored { copy, newest, .. } = restore(&one);
    fs::write(copy.log_dir().join("checkpoint"), newest.note().to_string()).unwrap();
    let log = start(&copy, 1, &[&one]);
    assert_eq!(refusal(&log), LogRefusal::Behind { signed: 27, size: 25 });
    assert_eq!(log.accept_loss(ORIGIN, 27).unwrap(), [newest.log_note()]);
    assert_eq!(copy.wait_for_all(&log).checkpoint().size, 25);
    drop(log);
    let log = start(&copy, 1, &[&one]);
    grow(&copy, &log);
    assert_eq!(copy.wait_for_all(&log).checkpoint().size, 30);
    // The list of what was given up has a bound, at which the oldest go.
    for number in 1..=LOST_HEADS as u64 {
        let size = 30 + number;
        log.note_answered(&one.public, size).unwrap();
        wait_for(&log, |log| (log.refusal()?.lost_size() == Some(size)).then_some(()));
        log.accept_loss(ORIGIN, size).unwrap();
    }
    let text = fs::read_to_string(seen_file(&copy)).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("lost ")).count(), LOST_HEADS);
}

fn seen_file(fixture: &Fixture) -> std::path::PathBuf {
    let id: String = log_key().public.id().iter().map(|byte| format!("{byte:02x}")).collect();
    fixture.log_dir().join(format!("seen-{id}"))
}

#[test]
fn a_file_that_cannot_be_read_stops_the_log_until_it_is_right() {
    let one = witness(1);
    let (Restored { copy, .. }, log) = warned(&one, true);
    drop(log);
    let whole = fs::read_to_string(seen_file(&copy)).unwrap();
    let half = whole[..whole.len() / 2].to_owned();
    for damaged in [whole.replace("\n27\n", "\n28\n"), half, whole.replace("shown", "seen"), "x".to_owned()] {
        fs::write(seen_file(&copy), &damaged).unwrap();
        let log = start(&copy, 1, &[&one]);
        let trouble = wait_for(&log, TransparencyLog::trouble);
        let cause = std::error::Error::source(&*trouble).map(ToString::to_string).unwrap_or_default();
        assert_mentions(&format!("{trouble} {cause}"), &["log/seen-", "Put it back from a backup"]);
        assert!(log.newest_checkpoint().is_none(), "it does not even look at what it has signed");
        fs::write(seen_file(&copy), &whole).unwrap();
        wait_for(&log, |log| log.refusal()?.lost_size());
    }
}

#[test]
fn one_witness_alone_stops_no_log_and_enough_of_them_do() {
    let fixture = Fixture::new();
    fixture.fill();
    let [one, two, three] = [1, 2, 3].map(witness);
    let all = [&one, &two, &three];
    let log = start(&fixture, 2, &all);
    fixture.wait_for_all(&log);
    log.note_answered(&one.public, 1 << 62).unwrap();
    // The others have said nothing, and may have seen it as well.
    assert_eq!(refusal(&log), LogRefusal::BehindWitness { witness: name(&one), seen: 1 << 62, size: 25 });
    log.note_answered(&two.public, 0).unwrap();
    log.note_answered(&three.public, 25).unwrap();
    fixture.commit(register("https/b.example/443/three"));
    assert_eq!(fixture.wait_for_all(&log).checkpoint().size, 26);
    // Alone it can take its word back, and say it again.
    log.note_answered(&one.public, 26).unwrap();
    log.note_answered(&one.public, 1 << 62).unwrap();
    // Two of them are enough to have shown it to someone. What both have seen counts, and stands.
    log.note_witnessed(&two.public, 27, None).unwrap();
    let expected = LogRefusal::BehindWitness { witness: name(&two), seen: 27, size: 26 };
    wait_for(&log, |log| (log.refusal()? == expected).then_some(()));
    log.note_answered(&one.public, 26).unwrap();
    log.note_answered(&two.public, 26).unwrap();
    fixture.commit(publish("https/b.example/443/three/releases/v1"));
    wait_for(&log, |log| (log.refusal()?.lost_size() == Some(27)).then_some(()));
    assert_eq!(log.figures().signed_size, 26);
}

#[test]
fn a_witness_that_posts_says_which_commits_it_has_seen() {
    let one = witness(1);
    let Restored { mut copy, newest, repository } = restore(&one);
    let log = start(&copy, 1, &[&one]);
    copy.wait_for_all(&log);
    let Checkpoint { size, root, .. } = newest.checkpoint().clone();
    log.note_witnessed(&one.public, size, Some(root)).unwrap();
    assert_eq!(refusal(&log).lost_size(), Some(27));
    // Anyone can post again what it said earlier.
    log.note_witnessed(&one.public, 20, None).unwrap();
    grow(&copy, &log);
    let expected = LogRefusal::ForkedWitness { witness: name(&one), seen: 27 };
    wait_for(&log, |log| (log.refusal()? == expected).then_some(()));
    drop(log);
    copy.replace_repository(&repository);
    let log = start(&copy, 1, &[&one]);
    assert_eq!(copy.wait_for_all(&log).checkpoint(), newest.checkpoint());
}

#[test]
fn a_log_remembers_who_has_cosigned_it() {
    let [one, two] = [1, 2].map(witness);
    let fixture = Fixture::new();
    let log = start(&fixture, 2, &[&one, &two]);
    let newest = fixture.wait_for_all(&log);
    assert!(!log.has_cosigned(&one.public));
    let line = newest.cosign(&one.public, &one.secret, 1_700_000_000).line;
    log.add_cosignatures(1, &[line]).unwrap();
    fixture.commit(register("https/b.example/443/three"));
    fixture.wait_for_all(&log);
    drop(log);
    let log = start(&fixture, 2, &[&one, &two]);
    assert!(log.has_cosigned(&one.public) && !log.has_cosigned(&two.public));
}

#[test]
fn another_log_is_not_stopped_by_what_was_seen_of_this_one() {
    let one = witness(1);
    let Restored { copy, newest, .. } = restore(&one);
    let log = start(&copy, 1, &[&one]);
    log.take_checkpoint(&newest.note(), &name(&one)).unwrap();
    refusal(&log);
    let mut foreign = Note::new(newest.text().to_owned());
    let stranger = witness(2);
    foreign.add(newest.cosign(&stranger.public, &stranger.secret, 7).line);
    let refused = log.take_checkpoint(&foreign, "the operator");
    assert!(matches!(refused, Err(TakeError::NotOurs { .. })), "{refused:?}");
}
