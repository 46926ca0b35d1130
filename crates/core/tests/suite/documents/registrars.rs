//! The registrars of a signers file (D105). The vector `values/signers` has their number and form at the edges.

use countersign_core::documents::signers::SignersFile;
use countersign_core::values::{bounds::SIGNERS_FILE_REGISTRARS, json::ParseError, key::SecretKey};
use countersign_testing::{
    Signers, alice, assert_mentions, bob, carol, dave, key, log_key, public, signers, witness_key,
};

fn base() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()])
}

fn parse(signers: &Signers) -> Result<SignersFile, ParseError> {
    SignersFile::parse(signers.text().as_bytes())
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
fn a_registrar_is_there_once_has_no_other_role_and_a_name_of_its_own() {
    let named = base().registrars([&carol()]).named(&carol(), "ci").named(&alice(), "alice");
    assert_eq!(parse(&named).unwrap().registrars()[0].name.as_deref(), Some("ci"));
    let same_name = base().registrars([&carol()]).named(&carol(), "a").named(&alice(), "a");
    let many: [SecretKey; SIGNERS_FILE_REGISTRARS + 1] = std::array::from_fn(|n| key(100 + n as u8));
    for (file, words) in [
        (base().registrars([&carol(), &alice()]), ["registrars", "artifact signers", "no other role"]),
        (base().registrars([&carol(), &dave()]), ["registrars", "master keys", "no other role"]),
        (base().registrars([&carol(), &carol()]), ["registrars[1]", "already", ""]),
        (same_name, ["registrars.name", "two keys", ""]),
        (base().registrars(many.each_ref()), ["registrars", "at most 16", ""]),
    ] {
        assert_mentions(&parse(&file).unwrap_err().to_string(), &words);
    }
}

#[test]
fn a_registrar_is_neither_log_nor_witness() {
    let text = base().registrars([&carol()]).log(&log_key(), &[(1, &[witness_key(1)])]).text();
    SignersFile::parse(text.as_bytes()).unwrap();
    for taken in [log_key(), witness_key(1)] {
        let text = text.replace(&carol().public_key().to_string(), &taken.ed25519().unwrap().to_string());
        let error = SignersFile::parse(text.as_bytes()).unwrap_err();
        assert_mentions(&error.to_string(), &["transparency", "registrar"]);
    }
}
