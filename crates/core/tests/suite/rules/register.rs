//! Registering a project (spec §4.1; D13–D15, D35), and dropping what is pending.

use countersign_core::documents::{signed_request::SignedRequest, signers::Metadata};
use countersign_core::rules::decide::proposal::{DropRefusal, Proposal, ProposalFault};
use countersign_core::rules::decide::register::{RegisterRefusal, check_register};
use countersign_core::values::digest::Sha512;
use countersign_testing::{
    FOURTEEN_DAYS, PENDING, PROJECT, Repo, Signers, World, alice, assert_mentions, at, bob, carol, dave,
    mallory, path, public, shifted, shifted_seconds, signers,
};

const DAY: i128 = 24 * 60 * 60;

fn team() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(1, [&alice(), &bob()]).admin(1, [&carol()]).master(1, [&dave()])
}

/// A world in which Alice has registered the team.
fn registered() -> World {
    let mut world = World::new();
    world.register(&team(), &alice()).expect("a registration");
    world
}

fn proposal_for(world: &World, project: &str) -> Proposal {
    Proposal { project: path(project), ..world.proposal(&team(), &alice()) }
}

/// Registers another project, and gives the project that stands in its way.
#[track_caller]
fn assert_in_the_way(world: &mut World, project: &str, other: &str) {
    let before = world.repo.clone();
    let refusal = world.register_proposal(&proposal_for(world, project)).expect_err("a refusal");
    assert_eq!(refusal, RegisterRefusal::Overlaps { project: path(project), other: path(other) });
    assert_mentions(&refusal.to_string(), &[other]);
    assert_eq!(world.repo, before);
}

#[test]
fn a_proposal_counts_as_retrieved_at_the_time_of_its_change() {
    let world = World::new();
    let (proposal, later) = (proposal_for(&world, PROJECT), shifted_seconds(world.now, 5));
    let moved = proposal.retrieved_at(later);
    assert_eq!(moved.origin.retrieved_at, later.to_whole_seconds());
    assert_eq!(moved.origin.retrieval_url, proposal.origin.retrieval_url);
}

#[test]
fn a_registration_stores_the_exact_bytes_its_origin_and_the_request_and_everyone_has_to_sign() {
    let mut world = World::new();
    let proposed = world.register(&team(), &alice()).unwrap();
    assert_eq!(proposed.project, path(PROJECT));
    assert_eq!(proposed.required_signers, public([&alice(), &bob(), &carol(), &dave()]));
    assert_eq!(
        world.repo.names_below(PROJECT),
        [
            "svc.signers.pending/svc.signers.json",
            "svc.signers.pending/svc.signers.json.metadata.json",
            "svc.signers.pending/svc.signers.json.metadata.json.signatures.json.pending",
            "svc.signers.pending/svc.signers.json.registration.json",
            "svc.signers.pending/svc.signers.json.signatures.json.pending",
        ]
    );
    assert_eq!(world.repo.names().len(), 5);
    assert_eq!(world.repo.text(PENDING), team().text());
    let metadata = Metadata::parse(&world.repo.bytes(&format!("{PENDING}.metadata.json"))).unwrap();
    assert_eq!(metadata.project_id, path(PROJECT));
    assert_eq!(metadata.origin, countersign_testing::origin(world.now));
    assert_eq!(metadata.signers_file_digest, Sha512::of(team().text().as_bytes()));
    assert_eq!(metadata.previous, None);
    let request = SignedRequest::parse(&world.repo.bytes(&format!("{PENDING}.registration.json"))).unwrap();
    assert_eq!((request.public_key, request.verify()), (alice().public_key(), Ok(())));
    assert_mentions(&world.last.message, &["Register", PROJECT, &alice().public_key().to_string()]);
}

#[test]
fn a_key_of_any_role_may_register_and_in_no_other_name() {
    for submitter in [alice(), carol(), dave()] {
        assert!(World::new().register(&team(), &submitter).is_ok());
    }
    let refusal = World::new().register(&team(), &mallory()).unwrap_err();
    assert_eq!(refusal, RegisterRefusal::NotListed(mallory().public_key()));
    assert_mentions(&refusal.to_string(), &["nvalid public key"]);
    let mut world = World::new();
    let posed = Proposal { submitter: alice().public_key(), ..world.proposal(&team(), &mallory()) };
    assert!(world.register_proposal(&posed).is_err(), "Mallory registered in Alice's name");
}

#[test]
fn an_invalid_signers_file_is_refused_with_the_field_at_fault() {
    let world = World::new();
    let mut proposal = world.proposal(&team(), &alice());
    proposal.signers_bytes =
        team().text().replace("\"threshold\": 1", "\"threshold\": 9").into_bytes().into();
    let refusal = world.clone().register_proposal(&proposal).unwrap_err();
    assert_mentions(&refusal.to_string(), &["artifact_signers[0].threshold"]);
}

#[test]
fn the_files_timestamp_is_at_most_ten_minutes_ahead() {
    let mut world = World::new();
    let file_time = at("2026-02-01T12:10:00Z");
    let ahead = signers("2026-02-01T12:10:00Z").artifact(1, [&alice()]);
    world.now = shifted(file_time, -600_000_000_001);
    assert_eq!(world.register(&ahead, &alice()), Err(ProposalFault::TimestampAhead(file_time).into()));
    world.now = shifted(file_time, -600_000_000_000);
    assert!(world.register(&ahead, &alice()).is_ok());
}

#[test]
fn a_project_registers_once_and_does_not_expire_with_its_update() {
    let mut world = World::with(&team(), &[&alice(), &bob(), &carol(), &dave()]);
    let mut updated = world.clone();
    updated.update(&signers("2026-02-01T11:00:00Z").artifact(1, [&alice()]), &alice()).unwrap();
    for world in [&mut world, &mut updated] {
        world.pass(1_000 * DAY);
        let refusal = world.register(&team(), &alice()).unwrap_err();
        assert_eq!(refusal, RegisterRefusal::AlreadyRegistered(path(PROJECT)));
        assert_mentions(&refusal.to_string(), &[PROJECT]);
    }
}

#[test]
fn a_registration_in_progress_stands_for_fourteen_days() {
    let mut world = registered();
    world.sign(PENDING, &alice()).unwrap();
    let other = signers("2026-01-31T11:00:00Z").artifact(1, [&bob()]);
    world.now = shifted_seconds(world.now, 14 * DAY - 1);
    let refusal = world.register(&other, &bob()).unwrap_err();
    assert_eq!(refusal, RegisterRefusal::InProgress(path(PROJECT)));
    assert_mentions(&refusal.to_string(), &[PROJECT]);
    assert_eq!(world.repo.text(PENDING), team().text());
}

#[test]
fn after_fourteen_days_it_may_be_registered_anew_and_nothing_of_the_old_one_stays() {
    let mut world = registered();
    world.sign(PENDING, &alice()).unwrap();
    world.pass(14 * DAY + 1);
    let other = signers("2026-02-14T10:00:00Z").artifact(1, [&mallory()]);
    let proposed = world.register(&other, &mallory()).unwrap();
    assert_eq!(proposed.required_signers, public([&mallory()]));
    let mut fresh = World::new();
    fresh.now = world.now;
    fresh.register(&other, &mallory()).unwrap();
    assert_eq!(world.repo, fresh.repo);
}

#[test]
fn the_expiry_is_the_one_that_is_configured() {
    let world = registered();
    let check = |expiry, seconds| {
        check_register(&world.repo, &path(PROJECT), expiry, shifted_seconds(world.now, seconds))
    };
    let minute = std::time::Duration::from_secs(60);
    assert!(check(minute, 59).is_err());
    assert!(check(minute, 61).is_ok());
    assert!(check(FOURTEEN_DAYS, 61).is_err());
}

#[test]
fn a_project_lies_neither_inside_nor_above_another_whatever_its_letter_case() {
    for mut world in [registered(), World::with(&team(), &[&alice(), &bob(), &carol(), &dave()])] {
        for other in ["acme/app/sub", "acme/app/a/b/c", "acme", "ACME/App", "Acme/app/sub"] {
            assert_in_the_way(&mut world, &format!("https/github.com/443/{other}"), PROJECT);
        }
        assert_in_the_way(&mut world, "https/github.com/443", PROJECT);
        for beside in ["443/acme/app2", "443/acme/ap", "8443/acme/app"] {
            let proposal = proposal_for(&world, &format!("https/github.com/{beside}"));
            assert!(world.register_proposal(&proposal).is_ok(), "{beside}");
        }
    }
}

#[test]
fn what_may_not_be_registered_is_known_before_it_is_fetched() {
    let world = registered();
    let check = |project| check_register(&world.repo, &path(project), FOURTEEN_DAYS, world.now);
    assert_eq!(check(PROJECT), Err(RegisterRefusal::InProgress(path(PROJECT))));
    assert!(matches!(check("https/github.com/443/acme"), Err(RegisterRefusal::Overlaps { .. })));
    assert_eq!(check("https/github.com/443/acme/other"), Ok(()));
}

#[test]
fn dropping_what_is_pending_leaves_what_was_there_before() {
    let nothing = Err(DropRefusal::NothingPending(path(PROJECT)));
    let mut world = registered();
    world.sign(PENDING, &alice()).unwrap();
    world.drop_pending().unwrap();
    assert_eq!(world.repo, Repo::default());
    assert_mentions(&world.last.message, &[PROJECT, "operator"]);
    assert_eq!(world.drop_pending(), nothing);
    assert!(world.register(&team(), &bob()).is_ok());

    let mut active = World::with(&team(), &[&alice(), &bob(), &carol(), &dave()]);
    assert_eq!(active.drop_pending(), nothing);
    let before = active.repo.clone();
    active.update(&signers("2026-02-01T11:00:00Z").artifact(1, [&alice()]), &alice()).unwrap();
    active.drop_pending().unwrap();
    assert_eq!(active.repo, before);
}
