//! How far releases and proposed signers have come.

use std::collections::BTreeSet;

use countersign_core::rules::{quorum::Tally, stored::ReleaseState};
use countersign_core::{documents::layout, proof::to_sign::SigningRequest, values::key::PublicKey};
use countersign_explain::describe::proposal::{ProposalDescription, describe_proposal};
use countersign_explain::describe::release::{
    ReleaseDescription, describe_release, describe_withdrawal, summarise_release,
};
use countersign_explain::describe::{Description, describe};
use countersign_explain::progress::groups_text;
use countersign_testing::evidence::{founded, good, rotated, signed_by, with_signature};
use countersign_testing::signing::{files_of, index_request, proposal_of};
use countersign_testing::{
    INDEX, PENDING, PROJECT, Signers, World, alice, at, bob, carol, dave, key, mallory, path, public,
    release, signers,
};

fn tally(collected: usize, needed: usize) -> Tally {
    Tally { collected, needed }
}

/// One of Alice and Bob, and two of Carol, Dave and key 5, sign releases.
fn two_groups() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(1, [&alice(), &bob()]).artifact(2, [&carol(), &dave(), &key(5)])
}

fn world_of_two_groups() -> World {
    let mut world = World::with(&two_groups(), &[&alice(), &bob(), &carol(), &dave(), &key(5)]);
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world
}

fn seen(world: &World) -> ReleaseDescription {
    describe_release(&world.repo, &path(INDEX)).expect("a sound repository").expect("a release")
}

#[test]
fn each_group_of_a_release_counts_by_itself_and_never_beyond_its_threshold() {
    let mut world = world_of_two_groups();
    assert_eq!((seen(&world).state, seen(&world).tally), (ReleaseState::Collecting, tally(0, 3)));
    world.sign_all(INDEX, &[&alice(), &bob()]);
    let release = seen(&world);
    assert_eq!(release.tally, tally(1, 3));
    let [first, second] = &release.groups[..] else { panic!("two groups") };
    assert_eq!((first.collected, first.threshold, first.is_met()), (2, 1, true));
    assert_eq!((second.collected, second.threshold), (0, 2));
    let missing: BTreeSet<PublicKey> = second.not_signed().map(|member| member.signer.key).collect();
    assert_eq!(missing, public([&carol(), &dave(), &key(5)]));
    assert!(first.signed().all(|member| member.signed_at == Some(world.now)));
    assert_eq!(release.completed_at, None);
}

#[test]
fn a_complete_release_says_when_its_last_signature_came() {
    let mut world = world_of_two_groups();
    world.sign_all(INDEX, &[&alice(), &carol()]);
    world.pass(60);
    world.sign(INDEX, &dave()).unwrap();
    let release = seen(&world);
    assert_eq!((release.state, release.tally), (ReleaseState::Complete, tally(3, 3)));
    assert_eq!(release.completed_at, Some(at("2026-02-01T12:01:00Z")));
    assert!(release.groups.iter().all(|group| group.is_met()) && release.has_current_signers);
    let summary = summarise_release(&world.repo, &path(INDEX)).unwrap().unwrap();
    assert_eq!((summary.state, summary.tally), (release.state, release.tally));
    assert_eq!(summary.last_signed_at, release.completed_at);
}

#[test]
fn a_release_keeps_the_signers_it_was_completed_under() {
    let mut world = world_of_two_groups();
    world.sign_all(INDEX, &[&alice(), &carol(), &dave()]);
    let next = signers("2026-02-01T09:00:00Z").artifact(1, [&alice()]).named(&alice(), "someone else");
    world.rotate(&next, &[&alice(), &carol(), &dave()]);
    let release = seen(&world);
    assert!(!release.has_current_signers);
    assert_eq!(release.groups.len(), 2);
    assert_eq!(release.groups[0].members[0].signer.name, None, "the name is of another file");
}

#[test]
fn a_revocation_says_why_when_and_by_whom() {
    let mut world = world_of_two_groups();
    world.sign_all(INDEX, &[&alice(), &carol(), &dave()]);
    world.revoke_index(&bob());
    let release = seen(&world);
    assert_eq!((release.state, release.tally), (ReleaseState::Revoked, tally(3, 3)));
    let revocation = release.revocation.expect("a revocation");
    assert_eq!((revocation.reason.as_str(), revocation.timestamp), ("a bad build", world.now));
    assert_eq!(revocation.signed.len(), 1);
    assert_eq!(revocation.signed[0].signer.key, bob().public_key());
}

#[test]
fn a_revocation_that_lacks_signatures_is_shown_as_begun() {
    let file = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).revocation(2, [&bob(), &carol()]);
    let mut world = World::with(&file, &[&alice(), &bob(), &carol()]);
    world.release_signed_by(&[&alice()]);
    let request = world.revoke_request(&world.revocation_document("why not"), &bob());
    assert!(!world.revoke(&request).unwrap().in_force);
    let release = seen(&world);
    assert_eq!(release.state, ReleaseState::Complete);
    assert!(release.revocation.is_none());
    let begun = release.begun_revocation.expect("a pending revocation");
    assert_eq!(
        (begun.reason.as_str(), begun.groups[0].collected, begun.groups[0].threshold),
        ("why not", 1, 2)
    );
}

/// What a signer who is asked for this is shown (D34).
fn asked(request: &SigningRequest) -> Description {
    request.check().expect("it can be signed");
    describe(&files_of(request), &request.path).expect("sound files").expect("what is to be signed")
}

#[test]
fn a_signer_is_told_who_has_signed_and_whose_signature_is_missing() {
    let mut release = index_request(&good().index);
    let text = release.files[&path(INDEX)].clone();
    // Bob's is right; Carol's is on another text; Mallory's is right, and no one asked.
    release.collected = with_signature(signed_by(&text, &[&bob(), &mallory()]), &carol(), "another");
    assert_eq!(asked(&release).signed(), public([&bob(), &mallory()]));
    assert_eq!(asked(&release).missing(), public([&alice(), &carol()]));
    let first = proposal_of(&founded(PROJECT));
    assert_eq!(asked(&first).missing(), first.check().expect("a registration").accepted_signers());
    let mut update = proposal_of(&rotated(PROJECT));
    update.collected = signed_by(&update.files[&path(PENDING)], &[&alice(), &bob(), &key(5)]);
    assert_eq!(asked(&update).missing(), public([&carol(), &key(6)]));
}

#[test]
fn a_signer_is_told_of_the_signers_in_force_whatever_copy_a_server_shows() {
    let request = index_request(&good().index);
    let theirs = signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]).text();
    let beside = [(layout::signers_copy_of(&request.path), theirs)].into();
    let files = request.to_files(&path(PROJECT), &beside).expect("files of a request");
    let shown = describe_release(&files, &request.path).expect("sound files").expect("a release");
    assert_eq!(shown.missing, asked(&request).missing());
}

fn proposed(world: &World) -> ProposalDescription {
    describe_proposal(&world.repo, &path(PROJECT)).expect("a sound repository").expect("a proposal")
}

/// Carol administrates, or else Dave as master.
fn administrated() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).admin(1, [&carol()]).master(1, [&dave()])
}

#[test]
fn who_is_known_already_keeps_the_name_that_is_known() {
    let mut world = World::with(&administrated().named(&carol(), "carol"), &[&alice(), &carol(), &dave()]);
    let next = signers("2026-02-01T09:00:00Z")
        .artifact(1, [&alice(), &bob()])
        .admin(1, [&carol()])
        .named(&carol(), "the boss")
        .named(&bob(), "bob");
    world.update(&next, &alice()).unwrap();
    world.sign(PENDING, &carol()).unwrap();
    let proposal = proposed(&world);
    assert_eq!(proposal.signed[0].signer.name.as_deref(), Some("carol"));
    assert_eq!(proposal.missing[0].name.as_deref(), Some("bob"));
}

#[test]
fn a_release_names_those_who_signed_and_those_who_are_still_asked() {
    let mut world =
        World::with(&two_groups().named(&dave(), "dave"), &[&alice(), &bob(), &carol(), &dave(), &key(5)]);
    world.add_release(&release("v1", "one"), &alice()).unwrap();
    world.sign(INDEX, &carol()).unwrap();
    world.pass(60);
    world.sign(INDEX, &alice()).unwrap();
    let release = seen(&world);
    assert_eq!(release.signatures.signers(), public([&alice(), &carol()]));
    assert_eq!(release.missing, public([&dave(), &key(5)]), "Alice was enough for the group of Bob");
    assert_eq!(release.names.signer(dave().public_key()).name.as_deref(), Some("dave"));
    world.sign(INDEX, &dave()).unwrap();
    assert!(seen(&world).missing.is_empty());
}

#[test]
fn a_begun_revocation_counts_under_the_signers_in_force_and_says_who_began_it() {
    let file = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).revocation(2, [&bob(), &carol()]);
    let mut world = World::with(&file, &[&alice(), &bob(), &carol()]);
    world.release_signed_by(&[&alice()]);
    let request = world.revoke_request(&world.revocation_document("why not"), &carol());
    world.revoke(&request).unwrap();
    let begun = seen(&world).begun_revocation.expect("a pending revocation");
    assert_eq!((begun.tally, begun.initiator), (tally(1, 2), Some(carol().public_key())));
    let next =
        signers("2026-02-01T09:00:00Z").artifact(1, [&alice()]).revocation(3, [&bob(), &carol(), &dave()]);
    world.rotate(&next, &[&alice(), &dave()]);
    let summary = summarise_release(&world.repo, &path(INDEX)).unwrap().expect("a release");
    let begun = summary.begun.expect("a pending revocation");
    assert_eq!(
        (begun.tally, begun.signatures.first_signed(), begun.signatures.last_signed()),
        (tally(1, 3), Some(world.now), Some(world.now))
    );
}

#[test]
fn an_objection_says_whose_it_is_and_which_content_it_is_about() {
    let mut world = world_of_two_groups();
    let first = seen(&world).digest;
    world.object(Some("the file is another"), &bob()).unwrap();
    let [objection] = &seen(&world).objections[..] else { panic!("one objection") };
    assert_eq!((objection.signer.key, objection.subject_digest), (bob().public_key(), first));
    assert!(objection.is_listed && seen(&world).earlier_objections.is_empty());
    world.add_release(&release("v1", "two"), &alice()).unwrap();
    let corrected = seen(&world);
    assert!(corrected.objections.is_empty() && corrected.digest != first);
    assert_eq!(corrected.earlier_objections, std::slice::from_ref(objection));
    world.withdraw(&alice()).unwrap();
    let withdrawal = describe_withdrawal(&world.repo, &path(INDEX)).unwrap().expect("a withdrawal");
    assert_eq!(
        (withdrawal.signer.key, &withdrawal.objections[..]),
        (alice().public_key(), &[objection.clone()][..])
    );
}

#[test]
fn a_proposal_says_until_when_it_waits_and_which_veto_was_begun() {
    let masters = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).master(2, [&dave(), &key(5)]);
    let file = masters.admin(1, [&carol()]).delay(24);
    let mut world = World::with(&file, &[&alice(), &carol(), &dave(), &key(5)]);
    let next = signers("2026-02-01T09:00:00Z").artifact(1, [&alice(), &bob()]).admin(1, [&carol()]);
    world.update(&next, &alice()).unwrap();
    assert_eq!((proposed(&world).waits_until, proposed(&world).has_masters), (None, true));
    world.sign_all(PENDING, &[&carol(), &bob()]);
    let proposal = proposed(&world);
    assert_eq!(proposal.waits_until, Some(at("2026-02-02T12:00:00Z")));
    assert!(proposal.missing.is_empty() && proposal.veto.is_none());
    let request = world.veto_request(&world.veto_document("not agreed"), &dave());
    world.veto(&request).unwrap();
    let veto = proposed(&world).veto.expect("a begun veto");
    assert_eq!((veto.reason.as_str(), veto.tally), ("not agreed", tally(1, 2)));
    assert_eq!(veto.signed[0].signer.key, dave().public_key());
    let missing = format!("has 1 of 2; 1 more from {}", key(5).public_key().short());
    assert_eq!(groups_text(&veto.groups), missing);
}
