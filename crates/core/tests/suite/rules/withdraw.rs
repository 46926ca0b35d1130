//! Withdrawing a release that still collects signatures (D120–D122).

use countersign_core::documents::signed_request::{Registrant, SignedRequest, Withdrawal};
use countersign_core::rules::decide::withdraw::{WithdrawRefusal, repeat_withdrawal, withdraw};
use countersign_core::rules::decide::{assets::AssetsRefusal, sign::SignRefusal};
use countersign_core::rules::stored;
use countersign_core::values::{key::SecretKey, other_format::OtherFormat};
use countersign_testing::{
    ACTIVE, INDEX, PENDING, PROJECT, Signers, World, alice, assert_mentions, bob, carol, dave, mallory, path,
    release, signers,
};

use super::machine;

fn team_at(time: &str) -> Signers {
    signers(time).artifact(2, [&alice(), &bob()]).admin(1, [&carol()]).master(1, [&dave()])
}

fn active() -> World {
    let team = team_at("2026-01-31T10:00:00Z").registrars([&machine()]);
    World::with(&team, &[&alice(), &bob(), &carol(), &dave()])
}

fn registered_by(person: &SecretKey) -> World {
    let mut world = active();
    world.add_release(&release("v1", "one"), person).expect("a release");
    world
}

fn not_allowed(person: &SecretKey) -> Result<(), WithdrawRefusal> {
    Err(WithdrawRefusal::NotAllowed { key: person.public_key(), project: path(PROJECT) })
}

#[test]
fn the_key_that_registered_it_withdraws_it_and_leaves_the_request_alone() {
    let mut world = registered_by(&alice());
    world.submit(&world.submission_with(&alice(), &[OtherFormat::Ssh])).unwrap();
    world.object(Some("no"), &bob()).unwrap();
    world.withdraw(&alice()).unwrap();
    let dir = format!("{PROJECT}/releases/tag/v1");
    let left = ["svc.index.json.earlier-objections.json", "svc.index.json.withdrawn.json"];
    assert_eq!(world.repo.names_below(&dir), left);
    let record = Withdrawal::parse(&world.repo.bytes(&format!("{INDEX}.withdrawn.json"))).unwrap();
    assert_eq!(record.request.public_key, alice().public_key());
    assert_eq!((record.body.file_path, record.body.reason.as_str()), (path(INDEX), "the wrong tag"));
    assert!(record.request.verify().is_ok());
    assert_mentions(&world.last.message, &["Withdraw", INDEX, &alice().public_key().to_string()]);
}

#[test]
fn the_registrant_and_admins_may_and_no_one_else() {
    for person in [alice(), carol()] {
        assert_eq!(registered_by(&alice()).withdraw(&person), Ok(()));
    }
    // Another signer, a master and a registrar did not register it.
    for person in [bob(), dave(), machine(), mallory()] {
        assert_eq!(registered_by(&alice()).withdraw(&person), not_allowed(&person));
    }
    assert_eq!(registered_by(&machine()).withdraw(&machine()), Ok(()));
    assert_eq!(registered_by(&dave()).withdraw(&dave()), Ok(()));
}

#[test]
fn a_registrar_withdraws_only_what_no_one_has_signed_or_objects_to() {
    let refused = || WithdrawRefusal::RegistrarCannotWithdraw {
        key: machine().public_key(),
        project: path(PROJECT),
        index: path(INDEX),
    };
    let mut signed = registered_by(&machine());
    signed.sign(INDEX, &alice()).unwrap();
    assert_eq!(signed.withdraw(&machine()), Err(refused()));
    let mut objected = registered_by(&machine());
    objected.object(Some("no"), &bob()).unwrap();
    assert_eq!(objected.withdraw(&machine()), Err(refused()));
    // So it cannot put other content in their place.
    for world in [&mut signed, &mut objected] {
        let again = world.add_release(&release("v1", "two"), &machine());
        assert!(matches!(again, Err(AssetsRefusal::RegistrarCannotCorrect { .. })), "{again:?}");
    }
    assert_eq!(signed.withdraw(&carol()), Ok(()), "an admin decides");
    // What was taken back is no objection.
    objected.pass(1);
    objected.object(None, &bob()).unwrap();
    assert_eq!(objected.withdraw(&machine()), Ok(()));
    assert!(!objected.repo.has(&format!("{INDEX}.earlier-objections.json")));
}

#[test]
fn a_signer_who_registered_it_withdraws_it_whatever_others_said() {
    let mut world = registered_by(&bob());
    world.sign(INDEX, &alice()).unwrap();
    world.object(Some("no"), &dave()).unwrap();
    assert_eq!(world.withdraw(&bob()), Ok(()));
}

#[test]
fn a_replay_accepts_what_registrars_withdrew_before() {
    let mut world = registered_by(&machine());
    world.sign(INDEX, &alice()).unwrap();
    let withdrawal = world.withdrawal(INDEX, "the wrong tag", &machine());
    assert!(withdraw(&world.repo, &withdrawal).is_err());
    assert!(repeat_withdrawal(&world.repo, &withdrawal).is_ok());
    let not_theirs = world.withdrawal(INDEX, "the wrong tag", &bob());
    assert_eq!(repeat_withdrawal(&world.repo, &not_theirs).map(|_| ()), not_allowed(&bob()));
}

#[test]
fn without_admin_keys_every_artifact_signer_is_an_admin() {
    let team = signers("2026-01-31T10:00:00Z").artifact(1, [&alice(), &bob()]);
    let mut world = World::with(&team, &[&alice(), &bob()]);
    world.add_release(&release("v1", "one"), &alice()).unwrap();
    assert_eq!(world.withdraw(&bob()), Ok(()));
}

#[test]
fn a_registrant_that_a_rotation_removed_may_not_and_an_admin_may() {
    let mut world = registered_by(&bob());
    let next =
        signers("2026-02-01T11:00:00Z").artifact(1, [&alice()]).admin(1, [&carol()]).master(1, [&dave()]);
    world.rotate(&next, &[&carol()]);
    assert_eq!(world.withdraw(&bob()), not_allowed(&bob()));
    assert_eq!(world.withdraw(&carol()), Ok(()));
}

#[test]
fn a_registrant_that_became_a_registrar_still_may() {
    let mut world = registered_by(&bob());
    let next = signers("2026-02-01T11:00:00Z")
        .artifact(1, [&alice()])
        .admin(1, [&carol()])
        .master(1, [&dave()])
        .registrars([&bob()]);
    world.rotate(&next, &[&carol()]);
    assert_eq!(world.withdraw(&bob()), Ok(()));
}

#[test]
fn the_last_correction_says_who_registered_it() {
    let mut world = registered_by(&machine());
    let registrant = |world: &World| {
        Registrant::parse(&world.repo.bytes(&format!("{INDEX}.registrant.json"))).unwrap().key
    };
    assert_eq!(registrant(&world), machine().public_key());
    world.add_release(&release("v1", "two"), &bob()).unwrap();
    assert_eq!(registrant(&world), bob().public_key());
    assert_eq!(world.withdraw(&machine()), not_allowed(&machine()));
    assert_eq!(world.withdraw(&bob()), Ok(()));
}

#[test]
fn a_complete_or_revoked_release_has_no_registrant_and_cannot_be_withdrawn() {
    let mut world = registered_by(&alice());
    world.sign_all(INDEX, &[&alice(), &bob()]);
    assert!(!world.repo.has(&format!("{INDEX}.registrant.json")));
    assert_eq!(stored::registrant(&world.repo, &path(INDEX)), Ok(None));
    assert_eq!(world.withdraw(&alice()), Err(WithdrawRefusal::Complete(path(INDEX))));
    world.revoke_index(&carol());
    assert_eq!(world.withdraw(&carol()), Err(WithdrawRefusal::Revoked(path(INDEX))));
}

#[test]
fn what_is_not_there_is_not_found_and_what_is_gone_was_withdrawn() {
    let mut world = active();
    assert_eq!(world.withdraw(&alice()), Err(WithdrawRefusal::NotFound(path(INDEX))));
    let mut world = registered_by(&alice());
    world.withdraw(&alice()).unwrap();
    assert_eq!(world.withdraw(&alice()), Err(WithdrawRefusal::AlreadyWithdrawn(path(INDEX))));
    assert_eq!(world.sign(INDEX, &alice()), Err(SignRefusal::NotFound(path(INDEX))));
}

#[test]
fn only_releases_are_withdrawn() {
    let mut world = registered_by(&alice());
    let next = team_at("2026-02-01T11:00:00Z");
    world.update(&next, &carol()).unwrap();
    let copy = format!("{INDEX}.signers.json");
    for file in [ACTIVE, PENDING, copy.as_str(), "svc.repository.json"] {
        let refused = world.withdraw_as(&world.withdrawal(file, "no", &carol()));
        let expected = if world.repo.has(file) {
            WithdrawRefusal::NotWithdrawable(path(file))
        } else {
            WithdrawRefusal::NotFound(path(file))
        };
        assert_eq!(refused, Err(expected), "{file}");
    }
}

#[test]
fn a_digest_of_other_content_withdraws_nothing() {
    let mut world = registered_by(&alice());
    let seen = world.withdrawal(INDEX, "the wrong tag", &alice());
    world.add_release(&release("v1", "two"), &alice()).unwrap();
    assert_eq!(world.withdraw_as(&seen), Err(WithdrawRefusal::OtherIndex(path(INDEX))));
    // Without a digest, it is whatever is there.
    let mut blind = seen.clone();
    blind.body.subject_digest = None;
    assert_eq!(world.withdraw_as(&blind), Ok(()));
}

#[test]
fn the_path_is_free_and_a_registration_removes_the_record() {
    let mut world = registered_by(&alice());
    let old = world.submission(INDEX, &bob());
    let withdrawal = world.withdrawal(INDEX, "the wrong tag", &alice());
    assert_eq!(stored::withdrawal(&world.repo, &path(INDEX)), Ok(None));
    world.withdraw_as(&withdrawal).unwrap();
    assert_eq!(stored::withdrawal(&world.repo, &path(INDEX)), Ok(Some(withdrawal)));
    world.pass(1);
    world.add_release(&release("v1", "one"), &bob()).unwrap();
    assert_eq!(stored::withdrawal(&world.repo, &path(INDEX)), Ok(None));
    assert!(!world.repo.has(&format!("{INDEX}.withdrawn.json")));
    // The time of registration is in the index, so old signatures are of no use.
    assert_eq!(world.submit(&old), Err(SignRefusal::BadSignature(path(INDEX))));
    world.sign_all(INDEX, &[&alice(), &bob()]);
    assert!(world.repo.has(&format!("{INDEX}.signatures.json")));
    let again = world.add_release(&release("v1", "three"), &alice());
    assert_eq!(again, Err(AssetsRefusal::AlreadyRegistered(path(INDEX))));
}

#[test]
fn a_release_of_another_directory_stays() {
    let mut world = registered_by(&alice());
    world.add_release(&release("v1/deep", "deep"), &alice()).unwrap();
    world.withdraw(&alice()).unwrap();
    assert!(world.repo.has(&format!("{PROJECT}/releases/tag/v1/deep/svc.index.json")));
}

#[test]
fn a_request_is_a_withdrawal_by_its_body_alone() {
    let world = registered_by(&alice());
    let request = |payload: &str| SignedRequest {
        payload: payload.to_owned(),
        ..world.withdrawal(INDEX, "a", &alice()).request
    };
    let refused = |payload: &str| Withdrawal::of(request(payload)).unwrap_err().to_string();
    assert_mentions(&refused(r#"{"file_path": "a/b"}"#), &["reason", "missing"]);
    assert_mentions(&refused(r#"{"reason": "a"}"#), &["file_path", "missing"]);
    assert_mentions(&refused(r#"{"file_path": "../b", "reason": "a"}"#), &["file_path"]);
    assert_mentions(&refused(r#"{"file_path": "a", "reason": "a", "subject_digest": "x"}"#), &["sha512:"]);
    assert_mentions(&refused(r#"{"file_path": "a", "reason": "", "x": 1}"#), &["1 to 1000"]);
    let long = |count: usize| format!(r#"{{"file_path": "a", "reason": "{}"}}"#, "ü".repeat(count));
    assert_mentions(&refused(&long(1_001)), &["1 to 1000"]);
    assert!(Withdrawal::of(request(&long(1_000))).is_ok());
}
