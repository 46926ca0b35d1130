//! Keys that prove nothing, in a list of signatures (D1, D2, D9): they are never believed and never counted.

use countersign_core::documents::signers::{Group, Signer};
use countersign_core::documents::{history::History, signatures::SignatureSet};
use countersign_core::rules::{chain, chain::ChainFault, decide::sign::Signed, quorum};
use countersign_core::values::{digest::Sha512, key::KeyError, key::PublicKey, key::encode_base64};
use countersign_testing::{
    INDEX, PROJECT, World, alice, bob, documents::signature_set, path, public, release, signers,
};

const CONTENT: &[u8] = b"content";

/// Bytes that are no usable key: points of small order, and coordinates without a point.
fn useless_keys() -> Vec<[u8; 32]> {
    let small = |y: u8| std::array::from_fn(|i| if i == 0 { y } else { 0 });
    let minus_one = std::array::from_fn(|i| match i {
        0 => 0xec,
        31 => 0x7f,
        _ => 0xff,
    });
    let weak = [small(0), small(1), minus_one];
    let not_points = (2..).map(small).filter(|y| PublicKey::from_bytes(*y) == Err(KeyError::NotAPoint));
    // p + 1: another spelling of the point whose order is 1.
    let not_reduced = std::array::from_fn(|i| match i {
        0 => 0xee,
        31 => 0x7f,
        _ => 0xff,
    });
    weak.into_iter().chain(not_points.take(2)).chain([not_reduced]).collect()
}

/// The canonical spelling, for bytes that `PublicKey` would refuse.
fn spelling(bytes: &[u8; 32]) -> String {
    format!("svc-pub:{}", encode_base64(bytes).trim_end_matches('='))
}

/// R is the base point and S is 1: right for every content under a key that is the point of order 1.
fn forged_bytes() -> [u8; 64] {
    std::array::from_fn(|i| match i {
        0 => 0x58,
        1..32 => 0x66,
        32 => 1,
        _ => 0,
    })
}

fn forged_signature() -> String {
    encode_base64(&forged_bytes())
}

fn entry(key: &str, signature: &str) -> String {
    format!(r#""{key}": {{"signature": "{signature}", "collected_at": "2026-02-01T12:00:00Z"}}"#)
}

fn set_text(entries: &[String]) -> String {
    format!(r#"{{"entries": {{{}}}}}"#, entries.join(", "))
}

fn alices_entry(content: &[u8]) -> String {
    let signature = alice().sign(&Sha512::of(content));
    entry(&alice().public_key().to_string(), &signature.to_base64())
}

#[test]
fn the_forged_signature_would_deceive_a_lenient_verifier() {
    use ed25519_dalek::Verifier as _;
    let mut identity = [0; 32];
    identity[0] = 1;
    let key = ed25519_dalek::VerifyingKey::from_bytes(&identity).expect("a point");
    let signature = ed25519_dalek::Signature::from_bytes(&forged_bytes());
    assert!(key.verify(b"anything", &signature).is_ok(), "or the tests below show nothing");
}

#[test]
fn a_key_in_another_spelling_is_refused() {
    let key = alice().public_key();
    let signature = alice().sign(&Sha512::of(CONTENT)).to_base64();
    for other in
        [format!("{key}="), format!("{key}=="), key.to_base64(), format!(" {key}"), format!("{key} ")]
    {
        assert!(SignatureSet::parse(set_text(&[entry(&other, &signature)]).as_bytes()).is_err(), "{other:?}");
        let both = [entry(&key.to_string(), &signature), entry(&other, &signature)];
        assert!(
            SignatureSet::parse(set_text(&both).as_bytes()).is_err(),
            "beside its own spelling: {other:?}"
        );
    }
    assert!(SignatureSet::parse(set_text(&[entry(&key.to_string(), &signature)]).as_bytes()).is_ok());
}

#[test]
fn useless_keys_in_another_spelling_are_refused_as_well() {
    for bytes in useless_keys() {
        let padded = format!("{}=", spelling(&bytes));
        assert!(SignatureSet::parse(set_text(&[entry(&padded, &forged_signature())]).as_bytes()).is_err());
    }
}

#[test]
fn a_set_with_a_useless_key_never_verifies() {
    for bytes in useless_keys() {
        let useless = entry(&spelling(&bytes), &forged_signature());
        for entries in [vec![useless.clone()], vec![useless, alices_entry(CONTENT)]] {
            // Whether such a set can be read at all does not matter.
            let Ok(set) = SignatureSet::parse(set_text(&entries).as_bytes()) else { continue };
            let (key, _) = set.verify(CONTENT).expect_err("it proves nothing");
            assert_eq!(key.as_bytes(), &bytes);
        }
    }
}

#[test]
fn a_useless_key_never_counts_towards_a_threshold() {
    let members = [alice(), bob()].map(|person| Signer::nameless(person.public_key()));
    let groups = [Group { threshold: 2, signers: members.into() }];
    let mut entries = vec![alices_entry(CONTENT)];
    entries.extend(useless_keys().iter().map(|bytes| entry(&spelling(bytes), &forged_signature())));
    if let Ok(set) = SignatureSet::parse(set_text(&entries).as_bytes()) {
        assert!(!quorum::is_met(&groups, &set.signers()));
    }
    assert!(quorum::is_met(&groups, &signature_set(CONTENT).signers()));
}

#[test]
fn useless_keys_that_crept_into_a_collecting_set_complete_nothing() {
    let two = signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]);
    for bytes in useless_keys() {
        let mut world = World::with(&two, &[&alice(), &bob()]);
        world.add_release(&release("v1", "one"), &alice()).expect("a release");
        let crept_in = set_text(&[entry(&spelling(&bytes), &forged_signature())]);
        world.repo.put(&path(&format!("{INDEX}.signatures.json.pending")), crept_in.as_bytes());
        match world.sign(INDEX, &alice()) {
            Ok(signed) => assert_eq!(signed, Signed { is_complete: false, waits_until: None }),
            Err(refusal) => assert!(refusal.to_string().contains(INDEX), "{refusal}"),
        }
        assert!(!world.repo.has(&format!("{INDEX}.signatures.json")));
    }
}

#[test]
fn a_chain_with_a_useless_key_among_its_signatures_does_not_verify() {
    let world = World::with(&signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]), &[&alice()]);
    let text = String::from_utf8(world.repo.history(PROJECT).write()).expect("text");
    let sound = History::parse(text.as_bytes()).expect("a history");
    assert_eq!(sound.entries[0].signatures.signers(), public([&alice()]));
    chain::verify(&sound, &path(PROJECT)).expect("a sound chain");
    for bytes in useless_keys() {
        let forged =
            format!("{}, \"{}\"", entry(&spelling(&bytes), &forged_signature()), alice().public_key());
        let text = text.replacen(&format!("\"{}\"", alice().public_key()), &forged, 1);
        let Ok(history) = History::parse(text.as_bytes()) else { continue };
        let error = chain::verify(&history, &path(PROJECT)).expect_err("it proves nothing");
        assert!(matches!(error.fault, ChainFault::BadSignature(key) if key.as_bytes() == &bytes), "{error}");
    }
}
