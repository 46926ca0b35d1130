#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use countersign_core::{
    rules::decide::{
        assets::AssetsRefusal, object::ObjectRefusal, register::RegisterRefusal, revoke::RevokeRefusal,
        sign::SignRefusal, update::UpdateRefusal, veto::VetoRefusal, withdraw::WithdrawRefusal,
    },
    values::{key::SecretKey, path::RepoPath, time::Timestamp},
};
use countersign_server::{error::ApiError, limits::caps::CapRefusal};
use countersign_store::StoreError;

use super::*;

/// Each 409 of the server, and the name that programs are told. `quoted` is what people wrote as a reason.
fn conflicts(quoted: &str) -> Vec<(ApiError, &'static str)> {
    let project = || RepoPath::parse("https/dl.example.org/443/acme/app").unwrap();
    let file = || RepoPath::parse("https/dl.example.org/443/acme/app/1.0/svc.index.json").unwrap();
    let key = SecretKey::from_seed(&[7; 32]).public_key();
    let then = Timestamp::from_unix_seconds(1_800_000_000).unwrap();
    let (reason, digest) = (quoted.to_owned(), "sha512:00".to_owned());
    let other_veto = VetoRefusal::OtherPending { file: file(), reason, digest };
    let (reason, digest) = (quoted.to_owned(), "sha512:00".to_owned());
    let other_revocation = RevokeRefusal::OtherPending { file: file(), reason, digest };
    vec![
        (RegisterRefusal::AlreadyRegistered(project()).into(), "project_registered"),
        (RegisterRefusal::InProgress(project()).into(), "registration_pending"),
        (RegisterRefusal::Overlaps { project: project(), other: project() }.into(), "project_overlaps"),
        (UpdateRefusal::OtherPending(project()).into(), "other_update_pending"),
        (UpdateRefusal::MastersPending(project()).into(), "masters_update_pending"),
        (UpdateRefusal::Vetoed { project: project(), reason: quoted.to_owned() }.into(), "vetoed"),
        (UpdateRefusal::HistoryFull { project: project(), bytes: 9 }.into(), "history_full"),
        (SignRefusal::AlreadyComplete(file()).into(), "already_complete"),
        (SignRefusal::Revoked(file()).into(), "revoked"),
        (SignRefusal::AlreadySigned(key).into(), "already_signed"),
        (AssetsRefusal::AlreadyRegistered(file()).into(), "release_registered"),
        (AssetsRefusal::TooManyCollecting { project: project(), limit: 9 }.into(), "too_many_releases"),
        (AssetsRefusal::NoRoomToRotate { project: project(), waiting: 9 }.into(), "too_many_releases"),
        (WithdrawRefusal::AlreadyWithdrawn(file()).into(), "already_withdrawn"),
        (WithdrawRefusal::Complete(file()).into(), "already_complete"),
        (WithdrawRefusal::Revoked(file()).into(), "revoked"),
        (WithdrawRefusal::OtherIndex(file()).into(), "corrected"),
        (ObjectRefusal::Revoked(file()).into(), "revoked"),
        (ObjectRefusal::OtherIndex(file()).into(), "corrected"),
        (ObjectRefusal::NotLater { key, newest: then }.into(), "not_later"),
        (ObjectRefusal::NothingToTakeBack(key).into(), "no_objection"),
        (ObjectRefusal::Full(file()).into(), "too_many_objections"),
        (RevokeRefusal::NotComplete(file()).into(), "not_complete"),
        (other_revocation.into(), "other_revocation_pending"),
        (RevokeRefusal::AlreadySigned(key).into(), "already_signed"),
        (VetoRefusal::FirstRegistration(project()).into(), "first_registration"),
        (VetoRefusal::OtherProposal(file()).into(), "other_proposal"),
        (VetoRefusal::TooLate { file: file(), since: then }.into(), "too_late"),
        (other_veto.into(), "other_veto_pending"),
        (VetoRefusal::AlreadySigned(key).into(), "already_signed"),
        (
            CapRefusal::Registrations { dir: project(), pending: 9, key: "per_owner" }.into(),
            "too_many_registrations",
        ),
        (CapRefusal::Superseded { project: project(), superseded: 9 }.into(), "too_many_proposals"),
        (CapRefusal::SupersededBytes { project: project(), superseded: 9 }.into(), "too_many_proposals"),
        (StoreError::Conflict { path: file() }.into(), "path_taken"),
    ]
}

#[track_caller]
fn assert_named(quoted: &str) -> BTreeSet<&'static str> {
    conflicts(quoted)
        .into_iter()
        .map(|(error, name)| {
            let found = find_conflict(&to_client_words(&error.message)).map(|conflict| conflict.name);
            assert_eq!((error.status.as_u16(), found), (409, Some(name)), "{}", error.message);
            name
        })
        .collect()
}

#[test]
fn every_conflict_of_the_server_has_a_next_step_and_every_next_step_a_conflict() {
    let named = assert_named("it leaks keys");
    assert_eq!(named, CONFLICTS.iter().map(|conflict| conflict.name).collect());
}

#[test]
fn what_people_wrote_is_not_taken_for_another_conflict() {
    for Conflict { said: Begins(text) | Has(text), .. } in &CONFLICTS {
        assert_named(text);
    }
}
