//! The registrars of a signers file (D105).

use countersign_core::documents::signers::SignersFile;
use countersign_core::values::{bounds::SIGNERS_FILE_REGISTRARS, json::ParseError, key::SecretKey};
use countersign_testing::{
    Signers, alice, assert_mentions, bob, carol, dave, key, log_key, public, signer_text, signers,
    witness_key,
};

fn base() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()])
}

fn parse(signers: &Signers) -> Result<SignersFile, ParseError> {
    SignersFile::parse(signers.text().as_bytes())
}

/// The base file with this text as its registrars.
fn with(registrars: &str) -> Result<SignersFile, ParseError> {
    let text =
        base().text().replacen("\"version\"", &format!("\"registrars\": {registrars}, \"version\""), 1);
    SignersFile::parse(text.as_bytes())
}

fn entries(keys: &[SecretKey]) -> String {
    let entries: Vec<String> = keys.iter().map(|key| signer_text(&key.public_key().to_string())).collect();
    format!("[{}]", entries.join(","))
}

#[test]
fn a_registrar_is_no_signer() {
    let file = parse(&base().registrars([&carol()])).unwrap();
    assert!(file.has_registrar(&carol().public_key()));
    assert!(!file.has_registrar(&alice().public_key()));
    assert!(!file.lists(&carol().public_key()));
    assert_eq!(file.keys(), public([&alice(), &bob(), &dave()]));
    assert!(parse(&base()).unwrap().registrars().is_empty());
}

#[test]
fn a_key_with_another_role_is_no_registrar() {
    for (other, role) in [(alice(), "artifact_signers"), (dave(), "master_keys")] {
        let error = parse(&base().registrars([&carol(), &other])).unwrap_err();
        assert_mentions(&error.to_string(), &["registrars", role, "no other role"]);
    }
}

#[test]
fn a_registrar_is_there_once() {
    let error = parse(&base().registrars([&carol(), &carol()])).unwrap_err();
    assert_mentions(&error.to_string(), &["registrars[1]", "already"]);
}

#[test]
fn a_registrar_has_a_name_of_its_own() {
    let named = base().registrars([&carol()]).named(&carol(), "ci").named(&alice(), "alice");
    assert_eq!(parse(&named).unwrap().registrars()[0].name.as_deref(), Some("ci"));
    let error = parse(&base().registrars([&carol()]).named(&carol(), "a").named(&alice(), "a")).unwrap_err();
    assert_mentions(&error.to_string(), &["registrars.name", "two keys"]);
}

#[test]
fn a_registrar_is_neither_log_nor_witness() {
    let text = base().registrars([&carol()]).log(&log_key(), &[(1, &[witness_key(1)])]).text();
    SignersFile::parse(text.as_bytes()).unwrap();
    for taken in [log_key(), witness_key(1)] {
        let text = text.replace(&carol().public_key().to_string(), &taken.key().to_string());
        let error = SignersFile::parse(text.as_bytes()).unwrap_err();
        assert_mentions(&error.to_string(), &["transparency", "registrar"]);
    }
}

#[test]
fn a_file_has_a_few_registrars_or_no_such_field() {
    let keys: Vec<SecretKey> = (0..=SIGNERS_FILE_REGISTRARS as u8).map(|number| key(100 + number)).collect();
    assert_eq!(with(&entries(&keys[1..])).unwrap().registrars().len(), SIGNERS_FILE_REGISTRARS);
    assert_mentions(&with(&entries(&keys)).unwrap_err().to_string(), &["registrars", "at most 16"]);
    for (text, expected) in [("[]", "at least one"), ("null", "registrars"), ("{}", "registrars")] {
        assert_mentions(&with(text).unwrap_err().to_string(), &["registrars", expected]);
    }
}
