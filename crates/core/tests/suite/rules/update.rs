//! Proposing new signers for a registered project (spec §4.2; D13, D15).

use countersign_core::rules::decide::update::{UpdateRefusal, check_update, update};
use countersign_core::rules::decide::{proposal::Proposal, proposal::ProposalFault, sign::SignRefusal};
use countersign_core::{documents::signers::Metadata, values::bounds::HISTORY_BYTES, values::digest::Sha512};
use countersign_testing::{
    ACTIVE, PENDING, PENDING_METADATA, PROJECT, Signers, World, alice, assert_mentions, at, bob, carol, dave,
    key, mallory, path, public, shifted, signers,
};

use super::{active, whole_team};

/// The team with another artifact signer, key `n`, in Bob's place.
fn team_with(n: u8, time: &str) -> Signers {
    signers(time)
        .artifact(1, [&alice(), &key(n)])
        .admin(2, [&carol(), &key(5)])
        .master(1, [&dave()])
        .revocation(1, [&key(6)])
}

fn first() -> Signers {
    team_with(7, "2026-02-01T09:00:00Z")
}

fn second() -> Signers {
    team_with(8, "2026-02-01T10:00:00Z")
}

fn superseded_dir(signers: &Signers) -> String {
    let digest = Sha512::of(signers.text().as_bytes()).to_string();
    format!("{PROJECT}/svc.signers.superseded/{}", &digest[..16])
}

/// The five files of a proposal, by their names and contents.
fn proposal_files(world: &World, dir: &str) -> Vec<(String, String)> {
    let file = |name: &str| (name.to_owned(), world.repo.text(&format!("{dir}/{name}")));
    world.repo.names_below(dir).into_iter().map(file).collect()
}

fn pending_dir() -> String {
    format!("{PROJECT}/svc.signers.pending")
}

#[test]
fn a_proposal_is_stored_beside_the_active_file_and_names_what_it_replaces() {
    let mut world = active();
    let before = world.repo.text(ACTIVE);
    world.update(&first(), &alice()).unwrap();
    assert_eq!(world.repo.text(PENDING), first().text());
    assert_eq!(world.repo.text(ACTIVE), before);
    assert_eq!(world.repo.names_below(&pending_dir()).len(), 5);
    let metadata = Metadata::parse(&world.repo.bytes(PENDING_METADATA)).unwrap();
    assert_eq!(metadata.previous, Some(Sha512::of(whole_team().text().as_bytes())));
    assert_eq!(metadata.signers_file_digest, Sha512::of(first().text().as_bytes()));
    assert_eq!(metadata.project_id, path(PROJECT));
    assert_mentions(&world.last.message, &[PROJECT, &alice().public_key().to_string()]);
}

#[test]
fn a_project_without_active_signers_has_none_to_update() {
    let mut world = World::new();
    let refusal = world.update(&first(), &alice()).unwrap_err();
    assert_eq!(refusal, UpdateRefusal::NotRegistered(path(PROJECT)));
    assert_mentions(&refusal.to_string().to_lowercase(), &["register the repo first"]);
    world.register(&whole_team(), &alice()).unwrap();
    assert_eq!(world.update(&first(), &alice()), Err(UpdateRefusal::NotActive(path(PROJECT))));
}

#[test]
fn a_key_of_any_role_of_the_current_file_may_propose_and_no_other() {
    for submitter in [alice(), carol(), dave(), key(6)] {
        assert!(active().update(&first(), &submitter).is_ok());
    }
    for stranger in [key(7), mallory()] {
        let refusal = active().update(&first(), &stranger).unwrap_err();
        assert_eq!(refusal, UpdateRefusal::NotListed { key: stranger.public_key(), project: path(PROJECT) });
        let check = check_update(&active().repo, &path(PROJECT), &stranger.public_key());
        assert!(matches!(check, Err(UpdateRefusal::NotListed { .. })), "known before anything is fetched");
    }
    let world = active();
    let posed = Proposal { submitter: carol().public_key(), ..world.proposal(&first(), &mallory()) };
    assert!(update(&world.repo, &posed, world.now).is_err(), "Mallory proposed in Carol's name");
}

#[test]
fn the_new_timestamp_is_later_than_the_current_one() {
    for time in ["2026-01-31T10:00:00Z", "2026-01-31T09:59:59.999Z", "2026-01-31T11:00:00+01:00"] {
        let refusal = active().update(&team_with(7, time), &alice()).unwrap_err();
        assert!(matches!(refusal, UpdateRefusal::TimestampNotLater { .. }), "{time}: {refusal}");
    }
    assert!(active().update(&team_with(7, "2026-01-31T10:00:00.000000001Z"), &alice()).is_ok());
}

#[test]
fn the_new_timestamp_is_at_most_ten_minutes_ahead() {
    let mut world = active();
    let file_time = at("2026-03-01T00:10:00Z");
    let ahead = team_with(7, "2026-03-01T00:10:00Z");
    world.now = shifted(file_time, -600_000_000_001);
    assert_eq!(world.update(&ahead, &alice()), Err(ProposalFault::TimestampAhead(file_time).into()));
    world.now = shifted(file_time, -600_000_000_000);
    assert!(world.update(&ahead, &alice()).is_ok());
}

#[test]
fn required_are_the_added_keys_and_the_admins_of_both_sides_until_they_have_signed() {
    let mut world = active();
    let new = signers("2026-02-01T09:00:00Z").artifact(1, [&alice(), &key(7)]).admin(1, [&key(8), &bob()]);
    let proposed = world.update(&new, &alice()).unwrap();
    assert_eq!(proposed.required_signers, public([&key(7), &key(8), &bob(), &carol(), &key(5)]));
    let mut required_after = |signer: &countersign_core::values::key::SecretKey| {
        world.sign(PENDING, signer).unwrap();
        world.update(&new, &alice()).unwrap().required_signers
    };
    assert_eq!(required_after(&carol()), public([&key(7), &key(8), &bob(), &key(5)]));
    assert_eq!(
        required_after(&dave()),
        public([&key(7), &key(8), &bob()]),
        "the master stands for the current side"
    );
    assert_eq!(required_after(&bob()), public([&key(7), &key(8)]), "key 8 is added, too");
    assert_eq!(required_after(&key(8)), public([&key(7)]));
}

#[test]
fn proposing_the_pending_bytes_again_changes_nothing() {
    let mut world = active();
    let proposed = world.update(&first(), &alice()).unwrap();
    world.sign(PENDING, &carol()).unwrap();
    let before = world.repo.clone();
    world.pass(60);
    let again = world.update(&first(), &bob()).unwrap();
    assert!(world.last.is_empty());
    assert_eq!(world.repo, before);
    let still_required = proposed.required_signers.into_iter().filter(|key| *key != carol().public_key());
    assert_eq!(again.required_signers, still_required.collect());
}

#[test]
fn only_a_current_admin_or_master_replaces_what_is_pending() {
    for submitter in [alice(), bob(), key(6)] {
        let mut world = active();
        world.update(&first(), &alice()).unwrap();
        let before = world.repo.clone();
        assert_eq!(world.update(&second(), &submitter), Err(UpdateRefusal::OtherPending(path(PROJECT))));
        assert_eq!(world.repo, before);
    }
    for submitter in [carol(), key(5), dave()] {
        let mut world = active();
        world.update(&first(), &alice()).unwrap();
        world.update(&second(), &submitter).unwrap();
        assert_eq!(world.repo.text(PENDING), second().text());
    }
}

#[test]
fn without_admin_keys_an_artifact_signer_replaces_what_is_pending() {
    let current = signers("2026-01-31T10:00:00Z").artifact(1, [&alice(), &bob()]).revocation(1, [&carol()]);
    let mut world = World::with(&current, &[&alice(), &bob(), &carol()]);
    world.update(&first(), &alice()).unwrap();
    assert_eq!(world.update(&second(), &carol()), Err(UpdateRefusal::OtherPending(path(PROJECT))));
    assert!(world.update(&second(), &bob()).is_ok());
}

#[test]
fn a_replaced_proposal_is_set_aside_and_comes_back_with_its_metadata_and_signatures() {
    let mut world = active();
    world.update(&first(), &alice()).unwrap();
    world.sign(PENDING, &dave()).unwrap();
    let files = proposal_files(&world, &pending_dir());
    world.pass(60);
    let proposed = world.update(&second(), &carol()).unwrap();
    assert_eq!(proposal_files(&world, &superseded_dir(&first())), files);
    assert!(proposed.required_signers.contains(&carol().public_key()), "no signature is carried over");
    for file in [PENDING, PENDING_METADATA] {
        assert!(world.repo.text(&format!("{file}.signatures.json.pending")).contains("\"entries\": {}"));
    }
    let set_aside = format!("{}/svc.signers.json", superseded_dir(&first()));
    assert_eq!(world.sign(&set_aside, &dave()), Err(SignRefusal::NotSignable(path(&set_aside))));

    world.pass(60);
    assert_eq!(world.update(&first(), &alice()), Err(UpdateRefusal::OtherPending(path(PROJECT))));
    let back = world.update(&first(), &carol()).unwrap();
    assert_eq!(proposal_files(&world, &pending_dir()), files);
    assert!(world.repo.names_below(&superseded_dir(&first())).is_empty());
    assert_eq!(world.repo.names_below(&superseded_dir(&second())).len(), 5);
    assert_eq!(back.required_signers, public([&key(7)]), "the master has signed for both sides");
    assert_eq!(world.sign(PENDING, &dave()), Err(SignRefusal::AlreadySigned(dave().public_key())));
    assert!(world.sign(PENDING, &key(7)).unwrap().is_complete);
}

#[test]
fn activation_removes_the_superseded_proposals() {
    let mut world = active();
    world.update(&first(), &alice()).unwrap();
    world.update(&second(), &carol()).unwrap();
    world.update(&team_with(9, "2026-02-01T11:00:00Z"), &carol()).unwrap();
    assert_eq!(world.repo.names_below(&format!("{PROJECT}/svc.signers.superseded")).len(), 10);
    world.sign_all(PENDING, &[&dave(), &key(9)]);
    assert_eq!(world.repo.text(ACTIVE), team_with(9, "2026-02-01T11:00:00Z").text());
    assert!(world.repo.names_below(&format!("{PROJECT}/svc.signers.superseded")).is_empty());
    assert!(world.repo.names_below(&pending_dir()).is_empty());
}

/// A chain as the server would assemble it, with the signatures of everyone who may sign the proposal.
#[test]
fn a_history_has_a_largest_size_and_what_exceeds_it_is_not_proposed() {
    let entry = format!("{PROJECT}/svc.signers.history/000001.json");
    let propose = |padding: usize| {
        let mut world = active();
        let padded = world.repo.text(&entry) + &" ".repeat(padding);
        world.repo.put(&path(&entry), padded.as_bytes());
        world.update(&first(), &alice())
    };
    let Err(UpdateRefusal::HistoryFull { bytes, .. }) = propose(HISTORY_BYTES) else {
        panic!("a history of more than its bound")
    };
    let room = 2 * HISTORY_BYTES - bytes;
    propose(room).expect("the last byte");
    let refusal = propose(room + 1).unwrap_err();
    assert_eq!(refusal, UpdateRefusal::HistoryFull { project: path(PROJECT), bytes: HISTORY_BYTES + 1 });
    assert_mentions(&refusal.to_string(), &[PROJECT, &HISTORY_BYTES.to_string(), "smaller file"]);
}
