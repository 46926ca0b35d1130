//! Test vectors of bundles, chains and staples, each named after an attack, for us and for other implementations.
//!
//! A file says itself what it is: `description`, what to `expect` (`verified`, `revoked` or `refused`), by which `rule`
//! and why (`reason`), the `project`, and a `bundle` or a `history`; `staples` says what its files have. These words
//! stand in the file alone. What is tested is made here, from fixed seeds and times:
//! `COUNTERSIGN_WRITE_VECTORS=1 cargo test -p countersign-core-tests --test suite vectors` puts it into the files anew.
//! A new vector begins as a file that has only its words.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use countersign_core::documents::history::History;
use countersign_core::proof::bundle::Bundle;
use countersign_core::proof::verify::{RevocationFault, VerifyError, verify};
use countersign_core::rules::{chain::ChainError, chain::ChainFault, place::PlaceError};
use countersign_testing::path;
use serde_json::Value;

use self::{staples::StapleVector, vector::Vector};

mod chains;
mod cosignatures;
mod delays;
mod good_bundles;
mod hostile_bundles;
mod hostile_checkpoints;
mod hostile_revocations;
mod hostile_staples;
mod rebuilds;
mod staples;
mod values;
mod vector;

fn directory(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name)
}

/// The files of a directory, by name without ending.
#[expect(
    clippy::disallowed_methods,
    reason = "core does no I/O, but vectors are files; nothing else here is"
)]
fn read_files(directory_name: &str) -> BTreeMap<String, String> {
    let files = fs::read_dir(directory(directory_name)).expect("the directory").map(|entry| {
        let file = entry.expect("an entry").path();
        let name = file.file_stem().expect("a name").to_str().expect("text").to_owned();
        (name, fs::read_to_string(file).expect("a file"))
    });
    files.collect()
}

fn read_vectors(directory_name: &str) -> BTreeMap<String, Value> {
    let files = read_files(directory_name).into_iter();
    files.map(|(name, text)| (name, serde_json::from_str(&text).expect("JSON"))).collect()
}

/// Compares the files with what they should be, or writes them where that is asked for.
#[expect(
    clippy::disallowed_methods,
    reason = "core does no I/O, but vectors are files; nothing else here is"
)]
fn assert_fresh(directory_name: &str, made: &[(&str, String)]) {
    for (name, text) in made {
        if env::var("COUNTERSIGN_WRITE_VECTORS").as_deref() == Ok("1") {
            fs::write(directory(directory_name).join(format!("{name}.json")), text).expect("written");
        }
    }
    let found = read_files(directory_name);
    assert_eq!(found.len(), made.len(), "a file that no vector makes, or two vectors of one name");
    for (name, text) in made {
        assert!(found[*name] == *text, "{name} is stale: write it anew with COUNTERSIGN_WRITE_VECTORS=1");
    }
}

/// Checks that every file has the document that is made here, and runs it as a stranger would, who has nothing but the
/// file: it must give what the file says.
fn assert_all(name: &str, field: &str, vectors: &[Vector], judge: fn(&[u8], &str) -> String) {
    let files = read_vectors(name);
    let made: Vec<_> =
        vectors.iter().map(|vector| (vector.name, vector.text(field, &files[vector.name]))).collect();
    assert_fresh(name, &made);
    for (name, file) in read_vectors(name) {
        let document = serde_json::to_vec(&file[field]).expect("JSON");
        let rule = judge(&document, file["project"].as_str().expect("a project"));
        assert_eq!((&file["rule"], &file["expect"]), (&rule.as_str().into(), &word_of(&rule)), "{name}");
    }
}

/// What a file expects by which this rule decides.
fn word_of(rule: &str) -> Value {
    if matches!(rule, "verified" | "revoked") { rule.into() } else { "refused".into() }
}

#[test]
fn every_bundle_is_fresh_and_gives_what_it_says() {
    let vectors =
        [good_bundles::all(), hostile_bundles::all(), hostile_revocations::all(), rebuilds::all()].concat();
    assert_all("bundle", "bundle", &vectors, judge_bundle);
}

#[test]
fn every_chain_is_fresh_and_gives_what_it_says() {
    assert_all("chain", "history", &[chains::all(), delays::all()].concat(), judge_chain);
}

#[test]
fn every_staple_is_fresh_and_gives_what_it_says() {
    let vectors = [staples::good(), hostile_staples::all(), hostile_checkpoints::all()].concat();
    let files = read_vectors("log");
    let text = |vector: &StapleVector| (vector.name, staples::text(vector, &files[vector.name]));
    assert_fresh("log", &vectors.iter().map(text).collect::<Vec<_>>());
    for (name, file) in read_vectors("log") {
        let (rule, result) = staples::judge(&file);
        assert_eq!((&file["rule"], &file["expect"]), (&rule.as_str().into(), &word_of(&rule)), "{name}");
        assert_eq!((&result, result.is_null()), (&file["result"], file["expect"] == "refused"), "{name}");
    }
}

#[test]
fn every_value_at_the_edge_is_fresh_and_both_kinds_are_there() {
    let mut files = read_vectors("values");
    for name in values::names_at_edges() {
        assert!(cases(&mut files, "names").iter().any(|case| case["text"] == name), "{name}");
    }
    let made = values::FILES.map(|(name, judge)| {
        let mut refused = 0;
        for case in cases(&mut files, name).iter_mut() {
            let (field, answer) = judge(case);
            refused += usize::from(answer == Value::Null || answer == false);
            case[field] = answer;
        }
        let count = cases(&mut files, name).len();
        assert!(refused > 0 && refused < count, "{name}: {refused} of {count}");
        (name, serde_json::to_string_pretty(&files[name]).expect("JSON") + "\n")
    });
    assert_fresh("values", &made);
}

fn cases<'a>(files: &'a mut BTreeMap<String, Value>, name: &str) -> &'a mut Vec<Value> {
    files.get_mut(name).and_then(|file| file["cases"].as_array_mut()).expect("a list of cases")
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
    match countersign_core::rules::chain::verify(&history, &path(project)) {
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
        VerifyError::NotReproduced(_) => "not reproduced".to_owned(),
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
