#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use countersign_core::documents::statement::StatementKind;
use countersign_core::rules::auth::AuthRefusal;
use countersign_core::rules::decide::{
    ProposalFault, assets::AssetsRefusal, register::RegisterRefusal, sign::SignRefusal,
    statement::StatementRefusal, update::UpdateRefusal, withdraw::WithdrawRefusal,
};
use countersign_core::values::{json::ParseError, key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_server::events::{journal::not_in_history, not_kept};
use countersign_server::follow::mirror::state::NotTheOrigin;
use countersign_server::http::{blocks::BlockedThing, blocks::ChangeBlocked, error::ApiError};
use countersign_server::limits::{Limit, Limited};
use countersign_store::StoreError;
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use url::Url;

use crate::client::{ServerClient, advice::*, attempts::Answer, words::to_client_words};
use crate::words::output::{ColorChoice, Output};

/// Each 409 of the server, and the name that programs are told.
fn conflicts() -> Vec<(ApiError, &'static str)> {
    let project = || RepoPath::parse("https/dl.example.org/443/acme/app").unwrap();
    let file = || RepoPath::parse("https/dl.example.org/443/acme/app/1.0/svc.index.json").unwrap();
    let key = SecretKey::from_seed(&[7; 32]).public_key();
    let then = Timestamp::from_unix_seconds(1_800_000_000).unwrap();
    let [other_veto, other_revocation] = [StatementKind::Veto, StatementKind::Revocation].map(|kind| {
        let (reason, digest) = ("it leaks keys".to_owned(), "sha512:00".to_owned());
        StatementRefusal::OtherPending { kind, file: file(), reason, digest }
    });
    vec![
        (RegisterRefusal::AlreadyRegistered(project()).into(), "project_registered"),
        (RegisterRefusal::InProgress(project()).into(), "registration_pending"),
        (RegisterRefusal::Overlaps { project: project(), other: project() }.into(), "project_overlaps"),
        (UpdateRefusal::OtherPending(project()).into(), "other_update_pending"),
        (UpdateRefusal::MastersPending(project()).into(), "masters_update_pending"),
        (UpdateRefusal::Vetoed { project: project(), reason: "it leaks keys".to_owned() }.into(), "vetoed"),
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
        (StatementRefusal::Revoked(file()).into(), "revoked"),
        (StatementRefusal::OtherIndex(file()).into(), "corrected"),
        (StatementRefusal::NotLater { key, newest: then }.into(), "not_later"),
        (StatementRefusal::NothingToTakeBack(key).into(), "no_objection"),
        (StatementRefusal::Full(file()).into(), "too_many_objections"),
        (StatementRefusal::NotComplete(file()).into(), "not_complete"),
        (other_revocation.into(), "other_revocation_pending"),
        (StatementRefusal::AlreadySigned(key).into(), "already_signed"),
        (StatementRefusal::FirstRegistration(project()).into(), "first_registration"),
        (StatementRefusal::OtherProposal(file()).into(), "other_proposal"),
        (StatementRefusal::TooLate { file: file(), since: then }.into(), "too_late"),
        (other_veto.into(), "other_veto_pending"),
        (StatementRefusal::AlreadySigned(key).into(), "already_signed"),
        (ApiError::new(ErrorCode::TooManyRegistrations, "9 wait"), "too_many_registrations"),
        (ApiError::new(ErrorCode::TooManyProposals, "9 were replaced"), "too_many_proposals"),
        (StoreError::Conflict { path: file() }.into(), "path_taken"),
        (StoreError::TooLargeToShare { bytes: 9 }.into(), "change_too_large"),
    ]
}

/// Refusals and failures that have a hint, a kind or words of their own, and are no conflicts.
fn others() -> Vec<ApiError> {
    let project = RepoPath::parse("https/dl.example.org/443/acme/app").unwrap();
    let key = SecretKey::from_seed(&[7; 32]).public_key();
    let origin = "https://sign.example.org".to_owned();
    let url = Url::parse("https://dl.example.org/acme/SHA256SUMS").unwrap();
    let invalid = ProposalFault::InvalidSigners { url: url.to_string(), error: ParseError::new("", "no") };
    vec![
        StatementRefusal::MayNotRevoke { key, project: project.clone() }.into(),
        UpdateRefusal::NotListed { key, project: project.clone() }.into(),
        AssetsRefusal::NotASigner { key, project }.into(),
        NotTheOrigin { origin }.into(),
        ChangeBlocked(BlockedThing::Host("dl.example.org".to_owned())).into(),
        AuthRefusal::TooOld.into(),
        Limited { limit: Limit::Address, seconds: 9 }.into(),
        ApiError::missing_upstream(&url),
        invalid.into(),
        ApiError::PANICKED.into(),
        ApiError::BUSY.into(),
        ApiError::unknown_outcome("gone"),
        ApiError::DISK_FULL.into(),
        ApiError::NO_SUCH_ROUTE.into(),
        ApiError::no_signers("https/dl.example.org/443/acme/app"),
        not_kept("cafecafe"),
        not_in_history("cafecafe"),
    ]
}

/// What a command does with an answer: all of it but the words.
#[derive(Debug, PartialEq)]
struct Reaction {
    exit_code: u8,
    hint: String,
    details: Map<String, Value>,
    /// What the client says before it repeats the server's words.
    introduction: String,
}

fn client() -> ServerClient {
    ServerClient::new("http://127.0.0.1:1", Output::new(false, true, ColorChoice::Never)).unwrap()
}

fn react(client: &ServerClient, status: u16, body: &Value) -> Reaction {
    let answer = Answer {
        status: StatusCode::from_u16(status).unwrap(),
        bytes: body.to_string().into_bytes(),
        request_id: None,
        content_type: "application/json".to_owned(),
        location: None,
        retry_after: None,
    };
    let error = client.refused(&answer);
    let said = to_client_words(body["error"].as_str().unwrap());
    let introduction = error.to_string();
    let introduction = introduction.strip_suffix(&said).expect("the server's words are told").to_owned();
    Reaction {
        exit_code: error.kind().exit_code(),
        hint: error.hint().to_owned(),
        details: error.details().clone(),
        introduction,
    }
}

/// Sentences that once meant something to a client, and one that never did.
const OTHER_WORDS: [&str; 6] = [
    "x",
    "Signature already collected: this is a mirror of a file that is revoked",
    "the operator says that you may not revoke https://dl.example.org/",
    "Too late: it is complete already",
    "Project already registered",
    "Das geht nicht.",
];

#[test]
fn every_conflict_of_the_server_has_its_name_and_a_next_step_of_its_own() {
    let (client, mut named) = (client(), BTreeSet::new());
    for (error, name) in conflicts() {
        let code = error.code;
        assert_eq!((code.name(), code.status()), (name, 409), "{}", error.message);
        assert_ne!(hint_of(code), hint_of_status(409), "{name}");
        let reaction = react(&client, 409, &json!({ "error": error.message, "code": code }));
        assert_eq!(reaction.details["conflict"], name);
        assert_eq!(reaction.details["code"], name);
        named.insert(code);
    }
    // Only logs and witnesses meet these.
    named.extend([ErrorCode::OtherLogSize, ErrorCode::CheckpointNotWaiting]);
    let all = ErrorCode::ALL.into_iter().filter(|code| code.status() == 409);
    assert_eq!(named, all.collect());
}

#[test]
fn no_other_words_change_what_the_client_does() {
    let client = client();
    let told = conflicts().into_iter().map(|(error, _)| error).chain(others());
    let told = told.map(|error| (error.code, error.message));
    for (code, message) in told.chain(ErrorCode::ALL.map(|code| (code, code.meaning().to_owned()))) {
        let reaction = react(&client, code.status(), &json!({ "error": message, "code": code }));
        for words in OTHER_WORDS {
            let reworded = react(&client, code.status(), &json!({ "error": words, "code": code }));
            assert_eq!(reworded, reaction, "{} for: {message}", code.name());
        }
    }
}

#[test]
fn without_a_code_that_it_knows_the_client_goes_by_the_status() {
    let client = client();
    for status in (400..=431).chain(500..=507) {
        let plain = react(&client, status, &json!({ "error": "x" }));
        assert_eq!(plain.details, Map::from_iter([("status".to_owned(), json!(status))]));
        assert_eq!(plain.hint, hint_of_status(status));
        for words in OTHER_WORDS {
            assert_eq!(react(&client, status, &json!({ "error": words })), plain, "{status}");
        }
        let newer = react(&client, status, &json!({ "error": "x", "code": "of_2031" }));
        assert_eq!((&newer.hint, newer.exit_code), (&plain.hint, plain.exit_code));
        assert_eq!(newer.details["code"], "of_2031");
        let conflict = newer.details.get("conflict").and_then(Value::as_str);
        assert_eq!(conflict, (status == 409).then_some("of_2031"));
    }
}
