//! Registering a project (spec §4.1; D13–D15, D35), and dropping what is pending.

use countersign_core::documents::{signed_request::SignedRequest, signers::Metadata};
use countersign_core::rules::decide::register::{RegisterRefusal, check_register};
use countersign_core::rules::decide::{Proposal, ProposalFault, proposal::DropRefusal};
use countersign_core::values::digest::Sha512;
use countersign_testing::{
    ACTIVE, FOURTEEN_DAYS, PENDING, PROJECT, Repo, Signers, World, alice, assert_mentions, at, bob, carol,
    dave, mallory, path, public, shifted, shifted_seconds, signers,
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
fn a_registration_stores_five_files_and_no_more() {
    let world = registered();
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
}

#[test]
fn the_signers_file_is_stored_as_the_exact_bytes_that_were_fetched() {
    assert_eq!(registered().repo.text(PENDING), team().text());
}

#[test]
fn the_metadata_names_project_origin_and_digest_and_has_no_predecessor() {
    let world = registered();
    let metadata = Metadata::parse(&world.repo.bytes(&format!("{PENDING}.metadata.json"))).unwrap();
    assert_eq!(metadata.project_id, path(PROJECT));
    assert_eq!(metadata.origin, countersign_testing::origin(world.now));
    assert_eq!(metadata.signers_file_digest, Sha512::of(team().text().as_bytes()));
    assert_eq!(metadata.previous, None);
}

#[test]
fn the_submitters_signed_request_is_kept_and_can_be_verified() {
    let stored = registered().repo.bytes(&format!("{PENDING}.registration.json"));
    let request = SignedRequest::parse(&stored).unwrap();
    assert_eq!(request.public_key, alice().public_key());
    assert_eq!(request.verify(), Ok(()));
}

#[test]
fn everyone_still_has_to_sign_the_submitter_too() {
    let proposed = World::new().register(&team(), &alice()).unwrap();
    assert_eq!(proposed.project, path(PROJECT));
    assert_eq!(proposed.required_signers, public([&alice(), &bob(), &carol(), &dave()]));
}

#[test]
fn the_commit_says_what_happened_where_and_by_whom() {
    let message = registered().last.message;
    assert_mentions(&message, &["Register", PROJECT, &alice().public_key().to_string()]);
}

#[test]
fn a_key_of_any_role_may_register() {
    for submitter in [alice(), carol(), dave()] {
        assert!(World::new().register(&team(), &submitter).is_ok());
    }
}

#[test]
fn a_key_that_the_file_does_not_list_may_not_register() {
    let refusal = World::new().register(&team(), &mallory()).unwrap_err();
    assert_eq!(refusal, RegisterRefusal::NotListed(mallory().public_key()));
    assert_mentions(&refusal.to_string(), &["nvalid public key"]);
}

#[test]
fn the_submitter_is_the_key_that_authenticated_the_request() {
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
fn a_project_registers_once() {
    let mut world = World::with(&team(), &[&alice(), &bob(), &carol(), &dave()]);
    world.pass(1_000 * DAY);
    let refusal = world.register(&team(), &alice()).unwrap_err();
    assert_eq!(refusal, RegisterRefusal::AlreadyRegistered(path(PROJECT)));
    assert_mentions(&refusal.to_string(), &[PROJECT]);
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
fn an_active_project_does_not_expire_with_its_update() {
    let everyone = [&alice(), &bob(), &carol(), &dave()];
    let mut world = World::with(&team(), &everyone);
    let next = signers("2026-02-01T11:00:00Z").artifact(1, [&alice()]);
    world.update(&next, &alice()).unwrap();
    world.pass(100 * DAY);
    assert_eq!(world.register(&team(), &alice()), Err(RegisterRefusal::AlreadyRegistered(path(PROJECT))));
}

#[test]
fn a_project_lies_neither_inside_nor_above_another() {
    for mut world in [registered(), World::with(&team(), &[&alice(), &bob(), &carol(), &dave()])] {
        assert_in_the_way(&mut world, "https/github.com/443/acme/app/sub", PROJECT);
        assert_in_the_way(&mut world, "https/github.com/443/acme/app/a/b/c", PROJECT);
        assert_in_the_way(&mut world, "https/github.com/443/acme", PROJECT);
        assert_in_the_way(&mut world, "https/github.com/443", PROJECT);
    }
}

#[test]
fn projects_that_differ_in_letter_case_are_the_same() {
    let mut world = registered();
    assert_in_the_way(&mut world, "https/github.com/443/ACME/App", PROJECT);
    assert_in_the_way(&mut world, "https/github.com/443/Acme/app/sub", PROJECT);
}

#[test]
fn projects_beside_each_other_are_fine() {
    let mut world = registered();
    for project in
        ["https/github.com/443/acme/app2", "https/github.com/443/acme/ap", "https/github.com/8443/acme/app"]
    {
        assert!(world.register_proposal(&proposal_for(&world, project)).is_ok(), "{project}");
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
fn dropping_a_pending_registration_leaves_nothing() {
    let mut world = registered();
    world.sign(PENDING, &alice()).unwrap();
    world.drop_pending().unwrap();
    assert_eq!(world.repo, Repo::default());
    assert_mentions(&world.last.message, &[PROJECT, "operator"]);
    assert!(world.register(&team(), &bob()).is_ok());
}

#[test]
fn dropping_a_proposed_update_leaves_the_active_signers() {
    let mut world = World::with(&team(), &[&alice(), &bob(), &carol(), &dave()]);
    let before = world.repo.clone();
    world.update(&signers("2026-02-01T11:00:00Z").artifact(1, [&alice()]), &alice()).unwrap();
    world.drop_pending().unwrap();
    assert_eq!(world.repo, before);
    assert!(world.repo.has(ACTIVE));
}

#[test]
fn there_must_be_something_to_drop() {
    assert_eq!(World::new().drop_pending(), Err(DropRefusal::NothingPending(path(PROJECT))));
    let mut world = World::with(&team(), &[&alice(), &bob(), &carol(), &dave()]);
    assert_eq!(world.drop_pending(), Err(DropRefusal::NothingPending(path(PROJECT))));
}
