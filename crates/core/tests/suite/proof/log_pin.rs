//! A log is held to the checkpoint that was seen of it.

use countersign_core::proof::log_pin::{Continuation, LogPin, LogPinFault, latest_older_proof};
use countersign_core::proof::trust::{AsOf, Root, TrustStore};
use countersign_core::values::{time::Timestamp, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_core::{log::checkpoint::Cosignature, log::checkpoint::SignedCheckpoint, rules::chain};
use countersign_testing::{PROJECT, evidence::founded, evidence::noon, ml_dsa_cosign, ml_dsa_key, path};

use crate::log::world::{LogWorld, log_key, policy, seed};

fn log(size: usize) -> LogWorld {
    let mut log = LogWorld::default();
    log.rotate(&founded(PROJECT));
    (1..size).for_each(|_| log.idle());
    log
}

fn compare(
    seen: &SignedCheckpoint,
    shown: &SignedCheckpoint,
    is_timed: bool,
) -> Result<Continuation, LogPinFault> {
    LogPin::of(&seen.note(), noon()).compare(shown, &policy().witness_keys(), is_timed)
}

#[test]
fn sizes_roots_and_times_say_what_is_to_be_shown() {
    let small = log(3).cosigned(&[(1, 100), (2, 100)]);
    let large = log(5).cosigned(&[(1, 200), (3, 200)]);
    assert_eq!(compare(&small, &small, true), Ok(Continuation::Same));
    let [from, to] = [&small, &large].map(|signed| signed.checkpoint().head());
    assert_eq!(compare(&small, &large, false), Ok(Continuation::Grown { from, to }));
    assert_eq!(compare(&large, &small, true), Ok(Continuation::Shrunk { shown: from, seen: to }));
    assert_eq!(compare(&large, &small, false), Err(LogPinFault::Smaller { seen: 5, shown: 3 }));
    // A witness that has seen five entries does not cosign three later.
    let late = log(3).cosigned(&[(1, 201), (2, 100)]);
    assert!(matches!(
        compare(&large, &late, true),
        Err(LogPinFault::WitnessWentBack { seen: 5, shown: 3, .. })
    ));
    assert!(compare(&large, &log(3).cosigned(&[(1, 200), (2, 900)]), true).is_ok());
    // Whichever of its keys says so.
    let (mut late, second) = (log(3).cosigned(&[(2, 100)]), ml_dsa_key("witness1.example", 1));
    let line = ml_dsa_cosign(second.name(), 1, late.text(), 201);
    late.add_cosignatures(&[line], std::slice::from_ref(&second)).unwrap();
    let witnesses = [policy().witness_keys(), vec![second]].concat();
    let compared = LogPin::of(&large.note(), noon()).compare(&late, &witnesses, true);
    assert!(matches!(compared, Err(LogPinFault::WitnessWentBack { seen: 5, shown: 3, .. })));
    let mut other = LogWorld::default();
    other.rotate(&countersign_testing::evidence::rotated(PROJECT));
    (1..3).for_each(|_| other.idle());
    assert_eq!(compare(&small, &other.cosigned(&[]), false), Err(LogPinFault::Fork(3)));
}

#[test]
fn the_largest_checkpoint_is_remembered_and_reads_back() {
    let past = founded(PROJECT);
    let mut store = TrustStore::default();
    let chain = chain::verify(&past.history, &past.project).unwrap();
    store.accept(&chain, AsOf::Now, Root::Origin("https://example.org".to_owned()), noon()).unwrap();
    let (small, large) = (log(3).cosigned(&[(1, 100)]).note(), log(5).cosigned(&[(1, 200)]).note());
    // The last is as large, and says less.
    for note in [&small, &large, &small, &log(5).cosigned(&[]).note()] {
        store.remember_log(&path(PROJECT), &log_key(), note, noon());
    }
    assert_eq!(store.log_pin(&log_key()).unwrap().checkpoint, large.to_string());
    assert_eq!(TrustStore::parse(&store.write()).unwrap(), store);
    assert_eq!(store.check_log(&path(PROJECT), &log_key()), Ok(()));
    // Another log of the project; and another key for the origin, which is wrong for every project.
    let other = VerifierKey::new("other.example/log", KeyKind::Log, seed(9).public_key()).unwrap();
    let same_origin = VerifierKey::new(log_key().name(), KeyKind::Log, seed(9).public_key()).unwrap();
    let stranger = path("https/github.com/443/some/body");
    assert_eq!(*store.check_log(&path(PROJECT), &other).unwrap_err().accepted, log_key());
    assert_eq!(*store.check_log(&stranger, &same_origin).unwrap_err().shown, same_origin);
    assert_eq!(store.check_log(&stranger, &other), Ok(()));
    assert!(!store.forget_log("other.example/log") && store.forget_log(log_key().name()));
    assert_eq!(store.check_log(&path(PROJECT), &other), Ok(()));
    assert!(!String::from_utf8(store.write()).unwrap().contains("log"));
}

#[test]
fn a_pin_that_is_no_checkpoint_is_refused() {
    let mut store = TrustStore::default();
    store.remember_log(&path(PROJECT), &log_key(), &log(3).cosigned(&[]).note(), noon());
    let text = String::from_utf8(store.write()).unwrap();
    assert!(TrustStore::parse(text.as_bytes()).is_ok());
    for (from, to) in
        [("\\n3\\n", "\\n03\\n"), ("\"seen_at\"", "\"seen\""), ("example.com/log+", "example.com/log-")]
    {
        assert!(text.contains(from), "{from}");
        assert!(TrustStore::parse(text.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
    }
}

#[test]
fn the_past_can_be_shown_until_the_witnesses_that_are_left_are_too_few() {
    let at = |seconds| Timestamp::from_unix_seconds(seconds).ok();
    let cosigned = |times: &[(u8, u64)]| -> Vec<Cosignature> {
        log(3).cosigned(times).cosignatures().cloned().collect()
    };
    let now = at(1_000).unwrap();
    let latest = |times: &[(u8, u64)]| latest_older_proof(&policy(), &cosigned(times), now);
    // Two of three: one that has not cosigned needs one that has.
    assert_eq!(latest(&[]), None);
    assert_eq!(latest(&[(1, 100)]), None);
    // Those have cosigned the past before now. By a clock that was set back since, that can be five minutes ahead.
    assert_eq!(latest(&[(1, 100), (2, 150)]), at(1_301));
    assert_eq!(latest(&[(1, 100), (2, 150), (3, 120)]), at(1_301));
    // And a time of the present itself counts.
    assert_eq!(latest(&[(1, 1_400), (2, 1_350)]), at(1_400));
}
