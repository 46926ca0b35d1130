//! What there is to see of releases, proposals, projects and their histories.

use countersign_core::rules::quorum::{ConditionKind, Tally};
use countersign_explain::describe::proposal::{ProposalDescription, describe_proposal, tally_proposal};
use countersign_explain::describe::release::{describe_release, summarise_release};
use countersign_server::web::overview::{ProjectState, describe_project, list_steps, project_state};
use countersign_testing::{
    INDEX, PENDING, PROJECT, Signers, World, alice, at, bob, carol, dave, key, path, signers,
};

fn tally(collected: usize, needed: usize) -> Tally {
    Tally { collected, needed }
}

/// One of Alice and Bob, and two of Carol, Dave and key 5, sign releases.
fn two_groups() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(1, [&alice(), &bob()]).artifact(2, [&carol(), &dave(), &key(5)])
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

fn proposed(world: &World) -> ProposalDescription {
    describe_proposal(&world.repo, &path(PROJECT)).expect("a sound repository").expect("a proposal")
}

fn kinds(proposal: &ProposalDescription) -> Vec<(ConditionKind, bool)> {
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
    assert_eq!(proposal.submitter.as_ref().map(|signer| signer.key), Some(alice().public_key()));
    assert_eq!(proposal.missing.len(), 3);
    assert_eq!(project_state(&world.repo, &path(PROJECT)), Ok(Some(ProjectState::Registering(tally(2, 5)))));
    let project = describe_project(&world.repo, &path(PROJECT)).unwrap().unwrap();
    assert!(project.signers.is_none() && project.proposal.is_some());
    assert_eq!(project.shown.artifact_groups().len(), 2);
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
    // Carol, key 5 and Bob.
    assert_eq!((kinds(&proposed(&world)), proposed(&world).tally), (open.to_vec(), tally(0, 3)));
    assert_eq!(proposed(&world).conditions.iter().map(|c| c.ways.len()).collect::<Vec<_>>(), [2, 1, 1]);
    world.sign(PENDING, &dave()).unwrap();
    let proposal = proposed(&world);
    assert!(proposal.conditions[0].is_met && !proposal.conditions[0].ways[0].is_met);
    assert_eq!(proposal.tally, tally(1, 4), "Dave spares none of them");
    assert_eq!(tally_proposal(&world.repo, &path(PROJECT)), Ok(Some(proposal.tally)));
    assert_eq!(
        project_state(&world.repo, &path(PROJECT)),
        Ok(Some(ProjectState::Registered { signers: 3, is_changing: true }))
    );
    assert!(!proposal.changes.is_empty());
    assert_eq!(proposal.signed.len(), 1);
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
