//! Collecting signatures on an index and on a proposal: who, in which order of checks, until when (spec §4.3; D17).

use countersign_core::rules::decide::sign::{SignRefusal, SignaturesBody, sign_prepared};
use countersign_core::{documents::signatures::SignatureSet, values::digest::Sha512};
use countersign_testing::{
    ACTIVE, INDEX, PENDING, PENDING_METADATA, PROJECT, World, alice, assert_mentions, at, bob, carol, dave,
    mallory, path, public,
};

use super::{COMPLETE, INCOMPLETE, collecting, team};

/// A registration that waits for its signatures.
fn registering() -> World {
    let mut world = World::new();
    world.register(&team(), &alice()).expect("a registration");
    world
}

/// The refusal of a submission, which leaves everything as it was.
#[track_caller]
fn refusal(world: &mut World, submission: &SignaturesBody) -> SignRefusal {
    let before = world.repo.clone();
    let refusal = world.submit(submission).expect_err("a refusal");
    assert_eq!(world.repo, before);
    refusal
}

fn set(world: &World, file: &str) -> SignatureSet {
    SignatureSet::parse(&world.repo.bytes(file)).expect("a signatures file")
}

#[test]
fn signatures_are_collected_until_the_threshold_is_met() {
    let mut world = collecting();
    world.now = at("2026-02-01T13:00:00.75Z");
    assert_eq!(world.sign(INDEX, &alice()), INCOMPLETE);
    assert_mentions(&world.last.message, &["ign", INDEX, &alice().public_key().to_string()]);
    let pending = set(&world, &format!("{INDEX}.signatures.json.pending"));
    assert_eq!(pending.signers(), public([&alice()]));
    assert_eq!(pending.entries[&alice().public_key()].collected_at, at("2026-02-01T13:00:00Z"));
    assert_eq!(world.sign(INDEX, &carol()), COMPLETE);
    assert_mentions(&world.last.message, &["ign", INDEX, &carol().public_key().to_string()]);
    let complete = set(&world, &format!("{INDEX}.signatures.json"));
    assert_eq!(complete.verify(&world.repo.bytes(INDEX)), Ok(public([&alice(), &carol()])));
    assert!(!world.repo.has(&format!("{INDEX}.signatures.json.pending")));
}

#[test]
fn the_form_of_a_submission_is_checked_first() {
    let mut world = registering();
    let mut submission = world.submission(PENDING, &mallory());
    let metadata_signature = submission.signatures.remove(&path(PENDING_METADATA)).unwrap();
    assert_eq!(refusal(&mut world, &submission), SignRefusal::MissingMetadata(path(PENDING_METADATA)));
    submission.signatures.insert(path(PENDING_METADATA), metadata_signature);
    submission.signatures.remove(&path(PENDING)).unwrap();
    assert_eq!(refusal(&mut world, &submission), SignRefusal::MissingPrimary(path(PENDING)));
    // Of a file that does not exist, too.
    let mut absent = world.submission(INDEX, &mallory());
    absent.signatures.insert(path("a/b"), metadata_signature);
    assert_eq!(refusal(&mut world, &absent), SignRefusal::UnexpectedPath(path("a/b")));
    absent.signatures.clear();
    assert_eq!(refusal(&mut world, &absent), SignRefusal::MissingPrimary(path(INDEX)));
    let mut world = collecting();
    let mut submission = world.submission(INDEX, &alice());
    let beside = path(&format!("{INDEX}.signers.json"));
    submission.signatures.insert(beside.clone(), submission.signatures[&path(INDEX)]);
    assert_eq!(refusal(&mut world, &submission), SignRefusal::UnexpectedPath(beside));
}

#[test]
fn only_indexes_and_proposals_that_are_there_collect_signatures() {
    let mut world = collecting();
    let (copy, metadata) = (format!("{INDEX}.signers.json"), format!("{ACTIVE}.metadata.json"));
    for file in [ACTIVE, &metadata, &copy] {
        let mut submission = world.submission(file, &alice());
        submission.signatures.retain(|path, _| path.as_str() == file);
        assert_eq!(refusal(&mut world, &submission), SignRefusal::NotSignable(path(file)));
    }
    let notes = format!("{PROJECT}/releases/tag/v1/notes.txt");
    for absent in [&format!("{PROJECT}/releases/tag/v2/svc.index.json"), &notes] {
        let mut submission = world.submission(absent, &mallory());
        submission.signatures.retain(|path, _| path.as_str() == absent);
        let refused = refusal(&mut world, &submission);
        assert_eq!(refused, SignRefusal::NotFound(path(absent)), "before the right to sign");
        assert_eq!(refused.to_string(), format!("File not found: {absent}"));
    }
    // What is active is no longer pending.
    let mut submission = world.submission(PENDING, &alice());
    submission.signatures.insert(path(PENDING_METADATA), alice().sign(&Sha512::of(b"")));
    assert_eq!(refusal(&mut world, &submission), SignRefusal::NotFound(path(PENDING)));
}

#[test]
fn a_complete_or_revoked_file_is_refused_before_the_right_to_sign() {
    let mut world = collecting();
    world.sign_all(INDEX, &[&alice(), &bob()]);
    let mut revoked = world.clone();
    revoked.revoke_index(&alice());
    for key in [mallory(), alice(), carol()] {
        let submission = world.submission(INDEX, &key);
        assert_eq!(refusal(&mut world, &submission), SignRefusal::AlreadyComplete(path(INDEX)));
        assert_eq!(refusal(&mut revoked, &submission), SignRefusal::Revoked(path(INDEX)));
    }
}

#[test]
fn the_right_to_sign_is_checked_before_the_signature() {
    let mut world = collecting();
    for stranger in [mallory(), dave()] {
        let mut submission = world.submission(INDEX, &stranger);
        let expected = SignRefusal::NotAllowed { key: stranger.public_key(), path: path(INDEX) };
        assert_eq!(refusal(&mut world, &submission), expected);
        submission.signatures.insert(path(INDEX), stranger.sign(&Sha512::of(b"other")));
        assert_eq!(refusal(&mut world, &submission), expected);
    }
}

#[test]
fn a_second_signature_is_refused_before_it_is_looked_at() {
    let mut world = collecting();
    world.sign(INDEX, &alice()).unwrap();
    let mut submission = world.submission(INDEX, &alice());
    assert_eq!(refusal(&mut world, &submission), SignRefusal::AlreadySigned(alice().public_key()));
    submission.signatures.insert(path(INDEX), alice().sign(&Sha512::of(b"other")));
    assert_eq!(refusal(&mut world, &submission), SignRefusal::AlreadySigned(alice().public_key()));
}

#[test]
fn a_signature_over_other_content_or_by_another_key_is_refused() {
    let mut world = collecting();
    let mut submission = world.submission(INDEX, &alice());
    submission.signatures.insert(path(INDEX), alice().sign(&Sha512::of(b"other")));
    assert_eq!(refusal(&mut world, &submission), SignRefusal::BadSignature(path(INDEX)));
    let bobs = world.submission(INDEX, &bob()).signatures;
    let posed = SignaturesBody { signatures: bobs, ..submission };
    assert_eq!(refusal(&mut world, &posed), SignRefusal::BadSignature(path(INDEX)));
}

#[test]
fn what_was_verified_before_counts_for_the_same_content_only() {
    let mut world = registering();
    let submission = world.submission(PENDING, &alice());
    let prepared = submission.clone().prepare(&world.repo);
    let before = World::new();
    let prepared_too_early = submission.clone().prepare(&before.repo);
    for prepared in [&prepared, &prepared_too_early] {
        assert!(sign_prepared(&world.repo, prepared, world.now).is_ok());
    }
    world.drop_pending().unwrap();
    world.register(&team().artifact(1, [&alice()]), &alice()).unwrap();
    for prepared in [prepared, prepared_too_early] {
        let refused = sign_prepared(&world.repo, &prepared, world.now).unwrap_err();
        assert_eq!(refused, SignRefusal::BadSignature(path(PENDING)));
    }
    assert_eq!(refusal(&mut world, &submission), SignRefusal::BadSignature(path(PENDING)));
}

#[test]
fn one_bad_signature_of_two_leaves_nothing_recorded_and_neither_stands_for_the_other() {
    let mut world = registering();
    let right = world.submission(PENDING, &alice());
    for file in [PENDING, PENDING_METADATA] {
        let mut submission = right.clone();
        submission.signatures.insert(path(file), alice().sign(&Sha512::of(b"other")));
        assert_eq!(refusal(&mut world, &submission), SignRefusal::BadSignature(path(file)));
    }
    let [signers, metadata] = [PENDING, PENDING_METADATA].map(|file| right.signatures[&path(file)]);
    let swapped = [(path(PENDING), metadata), (path(PENDING_METADATA), signers)].into();
    let refused = refusal(&mut world, &SignaturesBody { signatures: swapped, ..right });
    assert!(matches!(refused, SignRefusal::BadSignature(_)));
    let strangers = world.submission(PENDING, &mallory());
    let expected = SignRefusal::NotAllowed { key: mallory().public_key(), path: path(PENDING) };
    assert_eq!(refusal(&mut world, &strangers), expected);
    assert_eq!(world.sign(PENDING, &alice()), INCOMPLETE);
}

#[test]
fn a_proposal_collects_the_same_signers_on_both_files() {
    let mut world = registering();
    world.sign_all(PENDING, &[&bob(), &dave()]);
    for file in [PENDING, PENDING_METADATA] {
        let set = set(&world, &format!("{file}.signatures.json.pending"));
        assert_eq!(set.verify(&world.repo.bytes(file)), Ok(public([&bob(), &dave()])));
    }
}
