//! Test vectors of bundles, chains and staples, each named after an attack, for us and for other implementations.
//!
//! A file says itself what it is: `description`, what to `expect` (`verified`, `revoked` or `refused`), by which `rule`
//! and why (`reason`), the `project`, and a `bundle` or a `history`; `staples` says what its
//! files have. The files are made here, from fixed seeds and times:
//! `COUNTERSIGN_WRITE_VECTORS=1 cargo test -p countersign-core --test suite vectors` writes them anew.

use std::collections::BTreeMap;

use countersign_core::documents::history::History;
use countersign_core::proof::{bundle::Bundle, verify::RevocationFault, verify::VerifyError, verify::verify};
use countersign_core::rules::{chain, chain::ChainError, chain::ChainFault, place::PlaceError};
use countersign_testing::path;
use serde_json::Value;

use self::{files::assert_fresh_files, files::read_files, vector::Expect, vector::Vector};

mod chains;
mod delays;
mod files;
mod good_bundles;
mod hostile_bundles;
mod hostile_checkpoints;
mod hostile_revocations;
mod hostile_staples;
mod staples;
mod value_documents;
mod value_places;
mod value_transparency;
mod values;
mod vector;

fn bundles() -> Vec<Vector> {
    [good_bundles::all(), hostile_bundles::all(), hostile_revocations::all()].concat()
}

fn assert_fresh(directory_name: &str, field: &str, vectors: &[Vector]) {
    let made: BTreeMap<String, String> =
        vectors.iter().map(|vector| (vector.name.to_owned(), vector.text(field))).collect();
    assert_eq!(made.len(), vectors.len(), "two vectors have one name");
    assert_fresh_files(directory_name, &made);
}

/// Runs every file as a stranger would, who has nothing but the file; gives what came out, by name.
fn run(directory_name: &str, field: &str, verdict: fn(&[u8], &str) -> String) -> BTreeMap<String, String> {
    let run = |(name, text): (String, String)| {
        let vector: Value = serde_json::from_str(&text).expect("JSON");
        let document = serde_json::to_vec(&vector[field]).expect("JSON");
        let verdict = verdict(&document, vector["project"].as_str().expect("a project"));
        let word = match verdict.as_str() {
            "verified" | "revoked" => verdict.as_str(),
            _ => "refused",
        };
        assert_eq!(vector["expect"], word, "{name}: {verdict}");
        (name, verdict)
    };
    read_files(directory_name).into_iter().map(run).collect()
}

fn assert_kinds(verdicts: &BTreeMap<String, String>, vectors: &[Vector]) {
    for vector in vectors {
        assert_eq!(verdicts[vector.name], vector.expect.kind(), "{}", vector.name);
    }
}

#[test]
fn every_bundle_is_fresh_and_gives_what_it_says() {
    let vectors = bundles();
    assert_fresh("bundle", "bundle", &vectors);
    assert_kinds(&run("bundle", "bundle", judge_bundle), &vectors);
}

#[test]
fn every_chain_is_fresh_and_gives_what_it_says() {
    let vectors = [chains::all(), delays::all()].concat();
    assert_fresh("chain", "history", &vectors);
    assert_kinds(&run("chain", "history", judge_chain), &vectors);
}

#[test]
fn every_staple_is_fresh_and_gives_what_it_says() {
    let vectors = [staples::good(), hostile_staples::all(), hostile_checkpoints::all()].concat();
    let made: BTreeMap<String, String> =
        vectors.iter().map(|vector| (vector.name.to_owned(), staples::text(vector))).collect();
    assert_eq!(made.len(), vectors.len(), "two vectors have one name");
    assert_fresh_files("log", &made);
    let files = read_files("log");
    for vector in &vectors {
        let file: Value = serde_json::from_str(&files[vector.name]).expect("JSON");
        let (rule, result) = staples::judge(&file);
        assert_eq!(rule, vector.expect.kind(), "{}", vector.name);
        assert_eq!(result, file["result"], "{}", vector.name);
        assert_eq!(result.is_null(), matches!(vector.expect, Expect::Refused { .. }), "{}", vector.name);
    }
}

#[test]
fn every_value_at_the_edge_is_fresh_and_both_kinds_are_there() {
    let made = values::all().into_iter().map(|(name, description, cases)| {
        let is_refused = |case: &Value| {
            case.get("reads_as").or(case.get("fault")).is_some_and(Value::is_null)
                || case["verifies"] == false
        };
        let refused = cases.iter().filter(|case| is_refused(case)).count();
        assert!(refused > 0 && refused < cases.len(), "{name}: {refused} of {}", cases.len());
        let file = serde_json::json!({ "description": description, "cases": cases });
        (name.to_owned(), serde_json::to_string_pretty(&file).expect("JSON") + "\n")
    });
    assert_fresh_files("values", &made.collect());
}

fn judge_bundle(document: &[u8], project: &str) -> String {
    let bundle = match Bundle::parse(document) {
        Ok(bundle) => bundle,
        Err(error) => return format!("not a bundle: {}", error.field),
    };
    match verify(&bundle.evidence) {
        Ok(artifact) => {
            assert_eq!(artifact.chain.project, path(project));
            "verified".to_owned()
        }
        Err(error) => describe(&error),
    }
}

fn judge_chain(document: &[u8], project: &str) -> String {
    let history = match History::parse(document) {
        Ok(history) => history,
        Err(error) => return format!("not a history: {}", error.field),
    };
    match chain::verify(&history, &path(project)) {
        Ok(_) => "verified".to_owned(),
        Err(error) => describe_chain(&error),
    }
}

fn describe(error: &VerifyError) -> String {
    match error {
        VerifyError::Index(error) => format!("index: {}", error.field),
        VerifyError::Place(PlaceError::NotAnIndex(_)) => "place: not an index".to_owned(),
        VerifyError::Place(PlaceError::OtherProject(_)) => "place: other project".to_owned(),
        VerifyError::Place(PlaceError::OtherRelease(_)) => "place: other release".to_owned(),
        VerifyError::Place(PlaceError::OtherSource { .. }) => "place: other source".to_owned(),
        VerifyError::Chain(error) => describe_chain(error),
        VerifyError::UnknownGovernor => "unknown governor".to_owned(),
        VerifyError::BadSignature(_) => "bad signature".to_owned(),
        VerifyError::TooFew { .. } => "too few".to_owned(),
        VerifyError::Revocation(fault) => format!("revocation: {}", describe_fault(fault)),
        VerifyError::Revoked(_) => "revoked".to_owned(),
    }
}

fn describe_fault(fault: &RevocationFault) -> &'static str {
    match fault {
        RevocationFault::Document(_) => "document",
        RevocationFault::OtherFile => "other file",
        RevocationFault::NoRequest => "no request",
        RevocationFault::UnknownGovernor => "unknown governor",
        RevocationFault::BadSignature(_) => "bad signature",
        RevocationFault::NotAllowed => "not allowed",
        RevocationFault::NoInitiator => "no initiator",
    }
}

fn describe_chain(ChainError { entry, fault }: &ChainError) -> String {
    let fault = match fault {
        ChainFault::Empty => "empty".to_owned(),
        ChainFault::Signers(error) => format!("signers file, {}", error.field),
        ChainFault::Metadata(error) => format!("metadata, {}", error.field),
        ChainFault::OtherProject(_) => "other project".to_owned(),
        ChainFault::OtherSigners => "other signers".to_owned(),
        ChainFault::Broken => "broken".to_owned(),
        ChainFault::NotLater => "not later".to_owned(),
        ChainFault::BadSignature(_) => "bad signature".to_owned(),
        ChainFault::NotAgreed => "not agreed".to_owned(),
        ChainFault::NoAgreement => "no agreement".to_owned(),
        ChainFault::NeedlessAgreement => "needless agreement".to_owned(),
        ChainFault::AgreedTooEarly => "agreed too early".to_owned(),
        ChainFault::BeforeFetched => "before it was fetched".to_owned(),
        ChainFault::NotAgreedThen => "not agreed then".to_owned(),
        ChainFault::Hasty => "hasty".to_owned(),
    };
    format!("chain, entry {entry}: {fault}")
}
