//! The offline bundle: read strictly, written reproducibly, and no change of it proves anything else.

use std::sync::LazyLock;

use countersign_core::proof::{bundle::Bundle, verify::Evidence, verify::VerifyError, verify::verify};
use countersign_core::values::digest::Sha512;
use countersign_testing::evidence::{
    evidence, founded, good, noon, release_index, revocation_by_request, revoked, rotated, signed_by,
};
use countersign_testing::{
    INDEX, PROJECT, alice, bob, carol, documents::KINDS, documents::pointers, few, key, path, steady,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::log::world::LogWorld;

fn written(evidence: Evidence) -> String {
    let bundle = Bundle { bundled_at: noon(), evidence, staple: None };
    String::from_utf8(bundle.write()).expect("our documents are text")
}

/// Signed under the second of two signers files, and withdrawn by a request.
fn revoked_by_request() -> Evidence {
    let shown = evidence(&rotated(PROJECT), INDEX, &release_index("v1"), &[&carol(), &key(5)]);
    let revocation = revocation_by_request(&shown, &alice(), &path(INDEX));
    Evidence { revocation: Some(revocation), ..shown }
}

fn unrevoked() -> Evidence {
    Evidence { revocation: None, ..revoked_by_request() }
}

#[test]
fn a_bundle_reads_back_as_it_was_written() {
    for evidence in [good(), revoked(), revoked_by_request(), unrevoked()] {
        let text = written(evidence.clone());
        let bundle = Bundle::parse(text.as_bytes()).expect("a bundle");
        assert_eq!(bundle, Bundle { bundled_at: noon(), evidence, staple: None });
        assert_eq!(bundle.write(), text.as_bytes());
        assert!(
            text.ends_with("}\n") && !text.ends_with("\n\n") && text.starts_with("{\n  \"version\": 2,\n")
        );
    }
}

#[test]
fn a_bundle_holds_index_signatures_history_metadata_revocation_and_time() {
    let document: Value = serde_json::from_str(&written(revoked())).expect("JSON");
    let names: Vec<&str> = document.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut expected = [
        "version", "bundled_at", "index_path", "index", "signatures", "signers_file_digest",
        "signers_history", "revocation", "staple",
    ];
    expected.sort_unstable();
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(document["bundled_at"], "2026-02-01T12:00:00Z");
    // Texts that were signed are strings, exactly as they were.
    assert_eq!(document["index"], revoked().index.as_str());
    assert_eq!(document["signers_history"]["entries"][0]["metadata"], revoked().history.entries[0].metadata);
    assert_eq!(document["revocation"]["request"], Value::Null);
}

#[test]
fn signed_texts_survive_whatever_characters_they_have() {
    let mut shown = good();
    shown.index = "\u{feff}\r\n\t\"\\ \u{0} \u{2028} \u{1f980} é e\u{301}".to_owned();
    shown.signatures = signed_by(&shown.index, &[&alice(), &bob()]);
    let bundle = Bundle::parse(written(shown.clone()).as_bytes()).expect("a bundle");
    assert_eq!(bundle.evidence.index, shown.index);
    assert!(bundle.evidence.signatures.verify(shown.index.as_bytes()).is_ok());
}

#[test]
fn a_bundle_is_no_document_that_anybody_signs_and_none_of_these_is_a_bundle() {
    for kind in KINDS {
        assert!((kind.rewrite)(written(revoked()).as_bytes()).is_err(), "{}", kind.name);
        assert!(Bundle::parse(&(kind.example)()).is_err(), "{}", kind.name);
    }
}

fn stapled(evidence: Evidence) -> Bundle {
    let mut log = LogWorld::default();
    log.rotate(&founded(PROJECT));
    log.complete(INDEX, &good().index);
    let staple = Some(log.staple(INDEX, &log.cosigned(&[(1, 1_700_000_000)])));
    Bundle { bundled_at: noon(), evidence, staple }
}

/// A bundle that has all that one can have.
pub(crate) fn example() -> Vec<u8> {
    stapled(revoked_by_request()).write()
}

#[test]
fn a_staple_in_a_bundle_reads_back_as_it_was_written() {
    let bundle = stapled(good());
    assert_eq!(Bundle::parse(&bundle.write()).expect("a bundle"), bundle);
}

fn remove(document: &mut Value, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    match document.pointer_mut(parent).expect("a parent") {
        Value::Object(members) => drop(members.remove(&name.replace("~1", "/").replace("~0", "~"))),
        Value::Array(items) => drop(items.remove(name.parse().expect("a number"))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => unreachable!("it has members"),
    }
}

fn parse(document: &Value) -> Result<Bundle, countersign_core::values::json::ParseError> {
    Bundle::parse(&serde_json::to_vec(document).expect("JSON"))
}

#[test]
fn forms_that_are_nearly_right_are_refused() {
    let text = written(revoked());
    let table = [
        ("\"version\": 2", "\"version\": 2.0"),
        ("\"version\": 2", "\"version\": \"2\""),
        ("\"version\": 2", "\"version\": 0"),
        ("\"index_path\": \"https/", "\"index_path\": \"HTTPS/"),
        ("\"index_path\": \"https/", "\"index_path\": \"/https/"),
        ("svc.index.json\"", "svc.index.json/\""),
        ("/releases/", "/./releases/"),
        ("\"sha512:", "\"SHA512:"),
        ("\"sha512:", "\""),
        ("\"bundled_at\": \"2026-02-01T12", "\"bundled_at\": \"2026-02-01 12"),
        ("\"bundled_at\": \"2026-02-01T12:00:00Z\"", "\"bundled_at\": 1769947200"),
        ("\"svc-pub:", "\""),
    ];
    for (from, to) in table {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert!(Bundle::parse(changed.as_bytes()).is_err(), "{to}");
    }
    assert!(Bundle::parse(format!("[{text}]").as_bytes()).is_err());
}

/// The bundles that are tampered with: one that holds, and one that is revoked.
static WHOLE: LazyLock<[Value; 2]> = LazyLock::new(|| {
    [unrevoked(), revoked_by_request()].map(|shown| serde_json::from_str(&written(shown)).expect("JSON"))
});

const SIGNED_TEXTS: [&str; 7] = [
    "/index", "/signers_history/entries/0/signers_config", "/signers_history/entries/0/metadata",
    "/signers_history/entries/1/signers_config", "/signers_history/entries/1/metadata",
    "/revocation/document", "/revocation/request/payload",
];

#[derive(Debug, Clone, Copy)]
enum Tampering {
    Replace(char),
    Insert(char),
    Delete,
    Truncate,
}

fn tampering() -> impl Strategy<Value = Tampering> {
    prop_oneof![
        any::<char>().prop_map(Tampering::Replace),
        prop::char::range(' ', '~').prop_map(Tampering::Replace),
        prop::sample::select(vec![' ', '\n', '0', 'a']).prop_map(Tampering::Insert),
        Just(Tampering::Delete),
        Just(Tampering::Truncate),
    ]
}

fn tamper(text: &str, place: prop::sample::Index, tampering: Tampering) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let place = place.index(chars.len());
    match tampering {
        Tampering::Replace(c) => chars[place] = c,
        Tampering::Insert(c) => chars.insert(place, c),
        Tampering::Delete => drop(chars.remove(place)),
        Tampering::Truncate => chars.truncate(place),
    }
    chars.into_iter().collect()
}

/// Whatever is verified is the one index that was signed, at its own path, with the people who signed it.
fn assert_nothing_else_is_proven(document: &[u8]) {
    let Ok(bundle) = Bundle::parse(document) else { return };
    let artifact = match verify(&bundle.evidence) {
        Ok(artifact) => artifact,
        Err(VerifyError::Revoked(revoked)) => {
            assert_eq!(revoked.revocation.revoked_by, countersign_testing::public([&alice()]));
            assert_eq!(revoked.revocation.document.reason, "a bad build");
            revoked.artifact
        }
        Err(_) => return,
    };
    assert_eq!(artifact.index, release_index("v1"));
    assert_eq!(artifact.index_digest, Sha512::of(unrevoked().index.as_bytes()));
    assert_eq!(artifact.path, path(INDEX));
    let signers: Vec<_> = artifact.signed_by.keys().copied().collect();
    assert_eq!(signers, countersign_testing::public([&carol(), &key(5)]).into_iter().collect::<Vec<_>>());
    let real = rotated(PROJECT);
    for (n, link) in artifact.chain.links.iter().enumerate() {
        assert_eq!(link.digest, real.digest(n));
        assert_eq!(link.metadata_digest, Sha512::of(real.history.entries[n].metadata.as_bytes()));
    }
}

proptest! {
    #![proptest_config(few(steady(), 384))]

    #[test]
    fn a_signed_text_that_was_changed_in_one_place_verifies_nothing(
        which in prop::sample::select(SIGNED_TEXTS.to_vec()),
        place: prop::sample::Index,
        tampering in tampering(),
    ) {
        let mut document = WHOLE[1].clone();
        let text = document.pointer_mut(which).expect("a text");
        let changed = tamper(text.as_str().expect("text"), place, tampering);
        prop_assume!(text.as_str() != Some(&changed));
        *text = Value::String(changed);
        if let Ok(bundle) = parse(&document) {
            let error = verify(&bundle.evidence).expect_err("it is verified");
            prop_assert!(!matches!(error, VerifyError::Revoked(_)), "{which}: {error}");
        }
    }

    #[test]
    fn a_field_that_was_deleted_or_replaced_proves_nothing_else(
        is_revoked: bool,
        victim: prop::sample::Index,
        donor: prop::sample::Index,
        manner in 0..4_u8,
    ) {
        let mut document = WHOLE[usize::from(is_revoked)].clone();
        let all = pointers(&document);
        let (victim, donor) = (victim.get(&all), donor.get(&all));
        let replacement = match manner {
            0 => None,
            1 => Some(Value::Null),
            2 => Some(Value::String(String::new())),
            _ => Some(document.pointer(donor).expect("a value").clone()),
        };
        match replacement {
            None => remove(&mut document, victim),
            Some(value) => *document.pointer_mut(victim).expect("a value") = value,
        }
        assert_nothing_else_is_proven(&serde_json::to_vec(&document).expect("JSON"));
        // Only the revocation as a whole can be left out: a bundle cannot prove that there is none.
        let is_verified = parse(&document).is_ok_and(|bundle| verify(&bundle.evidence).is_ok());
        prop_assert!(!is_verified || !is_revoked || victim == "/revocation", "{victim}");
    }

    #[test]
    fn any_byte_of_a_bundle_may_be_changed_and_nothing_else_is_proven(
        is_revoked: bool,
        place: prop::sample::Index,
        byte: u8,
    ) {
        let mut document = serde_json::to_vec(&WHOLE[usize::from(is_revoked)]).expect("JSON");
        let place = place.index(document.len());
        document[place] = byte;
        assert_nothing_else_is_proven(&document);
    }
}
