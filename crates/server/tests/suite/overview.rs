//! What there is to see of releases, proposals, projects and their histories.

use std::collections::BTreeSet;

use countersign_core::{
    documents::signers::{Role, SignersFile},
    rules::consent::{ConditionKind, Consent},
    values::key::{PublicKey, SecretKey},
};
use countersign_server::web::overview::{
    Tally,
    project::{ProjectState, describe_project, project_state},
    proposal::{ProposalOverview, describe_proposal, tally_proposal},
    release::{ReleaseOverview, ReleaseState, describe_release, summarise_release},
    timeline::list_steps,
};
use countersign_testing::{
    INDEX, PENDING, PROJECT, Signers, World, alice, at, bob, carol, dave, key, path, public, release, signers,
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

fn seen(world: &World) -> ReleaseOverview {
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
    assert!(!world.revoke(&request).unwrap().is_revoked);
    let release = seen(&world);
    assert_eq!(release.state, ReleaseState::Complete);
    assert!(release.revocation.is_none());
    let begun = release.begun_revocation.expect("a pending revocation");
    assert_eq!(
        (begun.reason.as_str(), begun.groups[0].collected, begun.groups[0].threshold),
        ("why not", 1, 2)
    );
}

#[test]
fn where_nothing_is_there_is_nothing_to_see() {
    let world = World::new();
    assert!(describe_release(&world.repo, &path(INDEX)).unwrap().is_none());
    assert!(summarise_release(&world.repo, &path(INDEX)).unwrap().is_none());
    assert!(describe_proposal(&world.repo, &path(PROJECT)).unwrap().is_none());
    assert!(describe_project(&world.repo, &path(PROJECT)).unwrap().is_none());
    assert_eq!(project_state(&world.repo, &path(PROJECT)), Ok(None));
}

fn proposed(world: &World) -> ProposalOverview {
    describe_proposal(&world.repo, &path(PROJECT)).expect("a sound repository").expect("a proposal")
}

fn kinds(proposal: &ProposalOverview) -> Vec<(ConditionKind, bool)> {
    proposal.conditions.iter().map(|condition| (condition.kind, condition.is_met)).collect()
}

#[test]
fn a_first_signers_file_needs_everyone() {
    let mut world = World::new();
    world.register(&two_groups(), &alice()).unwrap();
    world.sign_all(PENDING, &[&bob(), &alice()]);
    let proposal = proposed(&world);
    assert!(proposal.is_first);
    assert_eq!((kinds(&proposal), proposal.tally), (vec![(ConditionKind::Everyone, false)], tally(2, 5)));
    assert_eq!(proposal.submitter.key, alice().public_key());
    assert_eq!(proposal.missing.len(), 3);
    assert_eq!(project_state(&world.repo, &path(PROJECT)), Ok(Some(ProjectState::Registering(tally(2, 5)))));
    let project = describe_project(&world.repo, &path(PROJECT)).unwrap().unwrap();
    assert!(project.signers.is_none() && project.proposal.is_some());
    assert_eq!(project.roles.iter().map(|role| role.role).collect::<Vec<_>>(), Role::ALL);
}

/// Carol administrates, or else Dave as master.
fn administrated() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).admin(1, [&carol()]).master(1, [&dave()])
}

#[test]
fn an_update_shows_each_condition_and_each_way_to_meet_it() {
    let mut world = World::with(&administrated(), &[&alice(), &carol(), &dave()]);
    let next = signers("2026-02-01T09:00:00Z").artifact(1, [&alice(), &bob()]).admin(2, [&carol(), &key(5)]);
    world.update(&next, &alice()).unwrap();
    let open =
        [ConditionKind::Current, ConditionKind::Proposed, ConditionKind::Added].map(|kind| (kind, false));
    assert_eq!((kinds(&proposed(&world)), proposed(&world).tally), (open.to_vec(), tally(0, 5)));
    assert_eq!(proposed(&world).conditions.iter().map(|c| c.ways.len()).collect::<Vec<_>>(), [2, 1, 1]);
    world.sign(PENDING, &dave()).unwrap();
    let proposal = proposed(&world);
    assert!(proposal.conditions[0].is_met && !proposal.conditions[0].ways[0].is_met);
    assert_eq!(proposal.tally, tally(1, 5));
    assert_eq!(tally_proposal(&world.repo, &path(PROJECT)), Ok(Some(proposal.tally)));
    assert_eq!(
        project_state(&world.repo, &path(PROJECT)),
        Ok(Some(ProjectState::Registered { signers: 3, is_changing: true }))
    );
    assert!(!proposal.changes.is_empty());
    assert_eq!(proposal.signed.len(), 1);
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
fn the_conditions_are_those_that_decide() {
    let parse = |file: &Signers| SignersFile::parse(file.text().as_bytes()).unwrap();
    let current = parse(&administrated());
    let next = parse(&signers("2026-02-01T09:00:00Z").artifact(1, [&bob()]).admin(1, [&carol(), &bob()]));
    let people = [alice(), bob(), carol(), dave()];
    for current in [None, Some(&current)] {
        let consent = Consent { current, proposed: &next };
        for chosen in 0..16_u32 {
            let signed: Vec<&SecretKey> = people
                .iter()
                .enumerate()
                .filter(|(i, _)| chosen & (1 << i) != 0)
                .map(|(_, key)| key)
                .collect();
            let signed = signed.into_iter().map(SecretKey::public_key).collect();
            let met = consent.conditions().iter().all(|condition| condition.is_met(&signed));
            assert_eq!(met, consent.is_complete(&signed));
            assert!(!met || consent.missing_signers(&signed).is_empty());
        }
    }
}

#[test]
fn the_history_tells_each_step_with_those_who_agreed() {
    let mut world = World::with(&administrated(), &[&alice(), &carol(), &dave()]);
    world.pass(3_600);
    let next = signers("2026-02-01T09:00:00Z").artifact(1, [&alice(), &bob()]).admin(1, [&carol()]);
    world.rotate(&next, &[&carol(), &bob()]);
    let steps = list_steps(&world.repo, &path(PROJECT), 0..9).unwrap();
    assert_eq!(steps.iter().map(|step| step.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((steps[0].agreed.len(), steps[1].agreed.len()), (3, 2));
    assert_eq!(steps[1].activated_at, at("2026-02-01T13:00:00Z"));
    let last = list_steps(&world.repo, &path(PROJECT), 1..2).unwrap();
    assert_eq!(last.len(), 1);
    assert_eq!(
        last[0].changes, steps[1].changes,
        "compared with the step before it, though that is not shown"
    );
    assert!(list_steps(&world.repo, &path(PROJECT), 2..9).unwrap().is_empty());
}
