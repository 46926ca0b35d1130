//! The staple as a document, and that no change of it proves anything else. The lies that are made with more care are
//! vectors.

use std::{sync::LazyLock, time::Duration};

use countersign_core::documents::transparency::WitnessGroup;
use countersign_core::log::note::NoteSignature;
use countersign_core::log::record::{LoggedState, ProjectRecord, Record, ReleaseRecord};
use countersign_core::log::{policy::Policy, status::Statuses, tree::leaf_hash, trie::TrieSibling};
use countersign_core::proof::freshness::{
    Freshness, LogTrust, StapleError, StapleSubject, age, count_cosigned, is_too_old, verify,
};
use countersign_core::proof::{bundle::Bundle, bundle::Staple, verify as release};
use countersign_core::values::bounds::{KEY_NAME_BYTES, POLICY_ENTRIES, STAPLE_BYTES};
use countersign_core::values::verifier_key::{ML_DSA_SIGNATURE_BYTES, VerifierKey};
use countersign_core::values::{digest::Sha512, path::RepoPath};
use countersign_testing::evidence::{founded, good, index_path, noon};
use countersign_testing::{
    INDEX, PROJECT, assert_mentions, documents::KINDS, few, ml_dsa_cosign, ml_dsa_key, path, shifted_seconds,
    steady,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::log::world::{LogWorld, policy, witness};

fn now() -> u64 {
    u64::try_from(noon().unix_seconds()).expect("after 1970")
}

/// Release v1 with two newer ones.
fn log() -> LogWorld {
    let mut log = LogWorld::default();
    log.rotate(&founded(PROJECT));
    log.complete(INDEX, &good().index);
    for tag in ["v2", "v3", "v4"] {
        log.complete(&index_path(tag), tag);
    }
    log
}

pub(crate) fn staple() -> Staple {
    let log = log();
    log.staple(INDEX, &log.cosigned(&[(1, now() - 7), (3, now() - 9)]))
}

fn subject() -> StapleSubject {
    StapleSubject::of(&release::verify(&good()).expect("a release"))
}

fn freshness(staple: &Staple) -> Result<Freshness, StapleError> {
    verify(staple, &subject(), LogTrust::Policy(&policy()), noon())
}

static WHOLE: LazyLock<(Vec<u8>, Freshness)> =
    LazyLock::new(|| (staple().write(), freshness(&staple()).expect("a right staple")));

#[test]
fn a_staple_reads_back_as_it_was_written() {
    let text = String::from_utf8(staple().write()).unwrap();
    assert_eq!(Staple::parse(text.as_bytes()).unwrap(), staple());
    assert!(text.starts_with("{\n  \"version\": 1,\n  \"leaf\": \"countersign/leaf/v1\\ncommit "));
    assert!(text.ends_with("]\n  }\n}\n"));
    for kind in KINDS {
        assert!((kind.rewrite)(text.as_bytes()).is_err(), "{}", kind.name);
        assert!(Staple::parse(&(kind.example)()).is_err(), "{}", kind.name);
    }
    assert!(Bundle::parse(text.as_bytes()).is_err());
}

#[test]
fn freshness_says_what_was_proven() {
    let fresh = freshness(&staple()).unwrap();
    assert_eq!(fresh.as_of.unwrap().unix_seconds(), noon().unix_seconds() - 9);
    assert_eq!((fresh.state, fresh.number, fresh.newer), (LoggedState::Complete, 1, 3));
    assert_eq!(fresh.newer_indexes, ["v4", "v3", "v2"].map(|tag| path(&index_path(tag))));
    assert_eq!(fresh.checkpoint, log().checkpoint());
    let mut witnesses: Vec<&str> =
        fresh.cosignatures.iter().map(|cosigned| cosigned.witness.name()).collect();
    witnesses.sort_unstable();
    assert_eq!(witnesses, ["witness1.example", "witness3.example"]);
}

#[test]
fn a_proof_is_as_old_as_the_clock_says_and_one_from_ahead_is_from_now() {
    let (hour, later) = (Duration::from_secs(3_600), shifted_seconds(noon(), 3_600));
    assert_eq!((age(noon(), later), age(later, noon())), (hour, Duration::ZERO));
    assert!(!is_too_old(noon(), later, hour) && is_too_old(noon(), later, hour - Duration::from_secs(1)));
}

#[test]
fn a_witness_that_cosigns_with_two_keys_is_counted_once_and_by_its_newest_time() {
    let log = log();
    let mut cosigned = log.cosigned(&[(1, now() - 30)]);
    let second = ml_dsa_key(witness(1).0.name(), 1);
    let third = ml_dsa_key("post-quantum.example", 2);
    for (key, n, time) in [(&second, 1, now() - 20), (&third, 2, now() - 10)] {
        let line = ml_dsa_cosign(key.name(), n, cosigned.text(), time);
        cosigned.add_cosignatures(&[line], std::slice::from_ref(key)).unwrap();
    }
    let judged = |keys: Vec<VerifierKey>| {
        let policy = Policy::of_groups(policy().log_keys().remove(0), &[WitnessGroup::new(2, keys)]).unwrap();
        verify(&log.staple(INDEX, &cosigned), &subject(), LogTrust::Policy(&policy), noon())
    };
    let fresh = judged(vec![witness(1).0, second.clone(), third.clone()]).unwrap();
    assert_eq!(fresh.as_of.unwrap().unix_seconds(), noon().unix_seconds() - 20);
    assert_eq!((fresh.quorum.cosigned, fresh.quorum.witnesses, fresh.cosignatures.len()), (2, 2, 3));
    assert_eq!(fresh.quorum.replaying, None, "the policy names no witness that replays");
    let keys = vec![witness(1).0, second.clone(), third.clone()];
    let counting = Policy::of_groups(policy().log_keys().remove(0), &[WitnessGroup::new(2, keys)]).unwrap();
    let counted = count_cosigned(&cosigned.note(), &policy().log_keys()[0], &counting, noon()).unwrap();
    assert_eq!(counted, (fresh.as_of, fresh.quorum));
    let refused = judged(vec![witness(1).0, second, witness(2).0]);
    let Err(StapleError::TooFewWitnesses(count)) = refused else { panic!("{refused:?}") };
    assert_eq!((count.cosigned, count.witnesses, count.needed), (1, 2, 2));
}

#[test]
fn the_reasons_name_what_is_wrong_and_what_to_do() {
    let log = log();
    let with =
        |times: &[(u8, u64)]| freshness(&log.staple(INDEX, &log.cosigned(times))).unwrap_err().to_string();
    assert_mentions(&with(&[(2, now())]), &["1 of 3", "at least 2"]);
    assert_mentions(&with(&[(1, now()), (2, now() + 301)]), &["witness2.example", "clock"]);
}

#[test]
fn every_real_staple_fits() {
    // The longest paths, of characters that JSON escapes, and all witnesses of the largest policy.
    let quotes = |count: usize| "\"".repeat(count);
    let dir = ["https/h/443", &quotes(200), &quotes(200), &quotes(200), &quotes(200), &quotes(45)].join("/");
    let longest: RepoPath = path(&format!("{dir}/svc.index.json"));
    path(&dir).check_storable_dir().unwrap();
    let mut largest = staple();
    largest.statuses.release.path = longest.clone();
    largest.statuses.project = ProjectRecord {
        path: path(&dir),
        completed: u32::MAX,
        newest: vec![longest; 8],
        ..largest.statuses.project
    };
    let siblings: Vec<_> = (100..164).map(|bit| TrieSibling { bit, hash: leaf_hash(b"") }).collect();
    largest.statuses.release_path.siblings = siblings.clone();
    largest.statuses.project_path.siblings = siblings;
    largest.proof.hashes = vec![leaf_hash(b""); 63];
    for n in 0..u8::try_from(POLICY_ENTRIES).unwrap() {
        let witness = ml_dsa_key(&"n".repeat(KEY_NAME_BYTES), n);
        largest.proof.note.add(NoteSignature::of_ml_dsa(&witness, now(), &[n; ML_DSA_SIGNATURE_BYTES]));
    }
    let written = largest.write();
    assert!(written.len() <= STAPLE_BYTES, "{}", written.len());
    assert_eq!(Staple::parse(&written).unwrap(), largest);
}

#[test]
fn a_staple_of_a_large_log_is_a_few_kilobytes() {
    let project = |n: u32| path(&format!("https/github.com/443/someone-{n}/some-project"));
    let index = |n: u32| path(&format!("{}/releases/tag/v1.{n}.0/svc.index.json", project(n / 100)));
    let (digest, state) = (Sha512::of(b"index"), LoggedState::Complete);
    let releases = (0..20_000).map(|n| {
        Record::Release(ReleaseRecord { path: index(n), number: n % 100 + 1, index: digest, state })
    });
    let projects = (0..200).map(|n| {
        let newest = (0..8).map(|m| index(n * 100 + 99 - m)).collect();
        let signers = Sha512::of(b"signers");
        Record::Project(ProjectRecord { path: project(n), signers, history: 3, completed: 100, newest })
    });
    let statuses = Statuses::of_records(releases.chain(projects));
    let mut large = staple();
    large.statuses = statuses.prove_release(&index(12_345), digest).unwrap();
    // As many as in a log of a million commits, and sixteen times as many releases.
    large.proof.hashes = vec![leaf_hash(b""); 20];
    for path in [&mut large.statuses.release_path, &mut large.statuses.project_path] {
        path.siblings.extend((0..4).map(|n| TrieSibling { bit: 200 + n, hash: leaf_hash(b"") }));
    }
    for n in [2, 4] {
        let line = log().cosigned(&[]).cosign(&witness(n).0, &witness(n).1, now()).line;
        large.proof.note.add(line);
    }
    let bytes = large.write().len();
    assert!(bytes < 6_000, "{bytes}");
}

/// Whatever is verified is what the log has.
fn assert_nothing_else_is_proven(document: &[u8]) {
    let Ok(staple) = Staple::parse(document) else { return };
    if let Ok(freshness) = freshness(&staple) {
        assert_eq!(freshness, WHOLE.1);
    }
}

/// The strings of a staple, as pointers.
const TEXTS: [&str; 6] =
    ["/leaf", "/proof", "/release/record", "/release/siblings/0", "/project/record", "/project/siblings/0"];

proptest! {
    #![proptest_config(few(steady(), 384))]

    #[test]
    fn any_byte_of_a_staple_may_be_changed_and_nothing_else_is_proven(place: prop::sample::Index, byte: u8) {
        let mut document = WHOLE.0.clone();
        let place = place.index(document.len());
        document[place] = byte;
        assert_nothing_else_is_proven(&document);
    }

    #[test]
    fn any_text_of_a_staple_may_be_cut_or_replaced_and_nothing_else_is_proven(
        which in prop::sample::select(TEXTS.to_vec()),
        place: prop::sample::Index,
        length in 0..80_usize,
        by in prop::sample::select(vec!["", "0", "\n", "A", " ", "1\n", "— "]),
    ) {
        let mut document: Value = serde_json::from_slice(&WHOLE.0).expect("JSON");
        let text = document.pointer_mut(which).expect("a text");
        let mut chars: Vec<char> = text.as_str().expect("text").chars().collect();
        let start = place.index(chars.len());
        let end = chars.len().min(start + length);
        chars.splice(start..end, by.chars());
        *text = Value::String(chars.into_iter().collect());
        assert_nothing_else_is_proven(&serde_json::to_vec(&document).expect("JSON"));
    }
}
