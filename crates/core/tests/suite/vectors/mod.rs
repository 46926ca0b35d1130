//! Test vectors of bundles, chains and staples, each named after an attack, for us and for other implementations.
//!
//! A file says itself what it is: `description`, what to `expect` (`verified`, `revoked` or `refused`), by which `rule`
//! and why (`reason`), the `project`, and a `bundle` or a `history`; `staples` says what its
//! files have. The files are made here, from fixed seeds and times:
//! `COUNTERSIGN_WRITE_VECTORS=1 cargo test -p countersign-core --test suite vectors` writes them anew.

mod chains;
mod delays;
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

use countersign_testing as support;
use std::{collections::BTreeMap, env, fs, path::PathBuf};

use countersign_core::{
    documents::history::History,
    proof::{
        bundle::Bundle,
        verify::{Evidence, RevocationFault, VerifyError, verify},
    },
    rules::{
        chain::{self, ChainError, ChainFault},
        place::PlaceError,
    },
};
use countersign_testing::{PROJECT, evidence::noon, path};
use serde_json::Value;

/// One file, and the kind of failure that it must give: not any failure will do.
#[derive(Debug, Clone)]
struct Vector {
    name: &'static str,
    description: &'static str,
    expect: Expect,
    project: String,
    /// As it stands in the file, a JSON object.
    document: String,
}

#[derive(Debug, Clone)]
enum Expect {
    Verified,
    Revoked,
    Refused {
        /// For people.
        reason: &'static str,
        /// As `describe` below gives it.
        kind: &'static str,
    },
}

impl Expect {
    fn word(&self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Revoked => "revoked",
            Self::Refused { .. } => "refused",
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Verified => "every rule is kept",
            Self::Revoked => "every rule is kept, and those who may have withdrawn the release",
            Self::Refused { reason, .. } => reason,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Revoked => "revoked",
            Self::Refused { kind, .. } => kind,
        }
    }
}

fn refused(kind: &'static str, reason: &'static str) -> Expect {
    Expect::Refused { reason, kind }
}

/// A bundle of this evidence.
fn bundle(
    name: &'static str,
    description: &'static str,
    expect: Expect,
    evidence: impl Into<Evidence>,
) -> Vector {
    let bundle = Bundle { bundled_at: noon(), evidence: evidence.into(), staple: None };
    let document = String::from_utf8(bundle.write()).expect("our documents are text");
    Vector { name, description, expect, project: PROJECT.to_owned(), document }
}

impl Vector {
    fn of_project(self, project: &str) -> Self {
        Self { project: project.to_owned(), ..self }
    }

    /// Another document, for what our types cannot express.
    fn edited(self, edit: impl FnOnce(String) -> String) -> Self {
        let before = self.document.clone();
        let document = edit(self.document);
        assert_ne!(document, before, "{} is edited", self.name);
        Self { document, ..self }
    }

    fn text(&self, field: &str) -> String {
        let quoted = |text: &str| serde_json::to_string(text).expect("JSON");
        // Line breaks inside strings are escaped, so that indenting the lines changes no value.
        let document = self.document.trim_end().replace('\n', "\n  ");
        format!(
            "{{\n  \"description\": {},\n  \"expect\": {},\n  \"rule\": {},\n  \"reason\": {},\n  \"project\": {},\n  \"{field}\": {document}\n}}\n",
            quoted(self.description),
            quoted(self.expect.word()),
            quoted(self.expect.kind()),
            quoted(self.expect.reason()),
            quoted(&self.project),
        )
    }
}

fn bundles() -> Vec<Vector> {
    [good_bundles::all(), hostile_bundles::all(), hostile_revocations::all()].concat()
}

fn directory(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)
}

/// The files of a directory, by name without ending.
#[expect(
    clippy::disallowed_methods,
    reason = "core does no I/O, but these vectors are files; nothing else here is"
)]
fn read_files(directory_name: &str) -> BTreeMap<String, String> {
    let files = fs::read_dir(directory(directory_name)).expect("the directory").map(|entry| {
        let file = entry.expect("an entry").path();
        let name = file.file_stem().expect("a name").to_str().expect("text").to_owned();
        (name, fs::read_to_string(file).expect("a file"))
    });
    files.collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "core does no I/O, but these vectors are files; nothing else here is"
)]
fn write_files_if_asked(directory_name: &str, made: &BTreeMap<String, String>) {
    if env::var("COUNTERSIGN_WRITE_VECTORS").as_deref() != Ok("1") {
        return;
    }
    for name in read_files(directory_name).keys().filter(|name| !made.contains_key(*name)) {
        fs::remove_file(directory(directory_name).join(format!("{name}.json"))).expect("removed");
    }
    for (name, text) in made {
        fs::write(directory(directory_name).join(format!("{name}.json")), text).expect("written");
    }
}

fn assert_fresh(directory_name: &str, field: &str, vectors: &[Vector]) {
    let made: BTreeMap<String, String> =
        vectors.iter().map(|vector| (vector.name.to_owned(), vector.text(field))).collect();
    assert_eq!(made.len(), vectors.len(), "two vectors have one name");
    assert_fresh_files(directory_name, &made);
}

/// Compares the files with what they should be, or writes them where that is asked for.
fn assert_fresh_files(directory_name: &str, made: &BTreeMap<String, String>) {
    write_files_if_asked(directory_name, made);
    let found = read_files(directory_name);
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(made), "write them anew with COUNTERSIGN_WRITE_VECTORS=1");
    for (name, text) in made {
        assert!(found[name] == *text, "{name} is stale: write it anew with COUNTERSIGN_WRITE_VECTORS=1");
    }
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
    let vectors = chains::all();
    assert_fresh("chain", "history", &vectors);
    assert_kinds(&run("chain", "history", judge_chain), &vectors);
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
        ChainFault::NotAgreedThen => "not agreed then".to_owned(),
        ChainFault::Hasty => "hasty".to_owned(),
    };
    format!("chain, entry {entry}: {fault}")
}
