//! The signed kinds of bytes share one key and one digest rule, so their forms exclude each other (D34).

use std::sync::LazyLock;

use countersign_testing::{NONCE, alice, at, documents::KINDS, documents::Kind, signed_request, steady};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// The kinds that read these bytes.
fn readers(bytes: &[u8]) -> Vec<&'static str> {
    KINDS.iter().filter(|kind| (kind.rewrite)(bytes).is_ok()).map(|kind| kind.name).collect()
}

/// A kind's examples: as we write it, with only what it must have, and with as little in it as it may have.
fn examples(kind: &Kind) -> Vec<Vec<u8>> {
    let mut examples = vec![(kind.example)()];
    let document: Map<String, Value> = serde_json::from_slice(&examples[0]).expect("an object");
    for name in document.keys() {
        let mut smaller = document.clone();
        smaller.remove(name);
        examples.push(serde_json::to_vec(&smaller).expect("JSON"));
    }
    for (name, value) in &document {
        let mut emptier = document.clone();
        let empty = match value {
            Value::Array(_) => Value::Array(Vec::new()),
            Value::Object(_) => Value::Object(Map::new()),
            Value::String(_) => Value::Null,
            Value::Null | Value::Bool(_) | Value::Number(_) => continue,
        };
        emptier.insert(name.clone(), empty);
        examples.push(serde_json::to_vec(&emptier).expect("JSON"));
    }
    examples.retain(|bytes| (kind.rewrite)(bytes).is_ok());
    examples
}

#[test]
fn no_document_of_one_kind_is_read_as_another() {
    for kind in KINDS {
        for example in examples(&kind) {
            assert_eq!(readers(&example), [kind.name], "{}", String::from_utf8_lossy(&example));
        }
    }
}

#[test]
fn an_empty_set_of_signatures_is_no_empty_history() {
    assert_eq!(readers(br#"{"entries": {}}"#), ["signatures"]);
    assert_eq!(readers(br#"{"entries": []}"#), ["history"]);
}

#[test]
fn a_signed_request_string_is_no_document_whatever_its_body() {
    for kind in KINDS {
        let body = kind.example_text();
        let request = signed_request(&alice(), at("2026-02-01T12:00:00Z"), &body);
        let canonical = format!("{}##{}##{}", request.timestamp, request.nonce, request.payload);
        assert_eq!(
            request.signature,
            alice().sign(&countersign_core::values::digest::Sha512::of(canonical.as_bytes()))
        );
        assert!(readers(canonical.as_bytes()).is_empty(), "{canonical}");
    }
}

#[test]
fn no_document_is_a_signed_request_string() {
    // A request string begins with the timestamp's digits; a document with a brace or white space.
    for kind in KINDS {
        for example in examples(&kind) {
            let text = String::from_utf8(example).unwrap();
            let parts: Vec<&str> = text.splitn(3, "##").collect();
            let time = countersign_core::values::time::Timestamp::parse(parts[0]);
            assert!(parts.len() < 3 || time.is_err(), "{text}");
        }
    }
}

#[test]
fn a_document_that_holds_the_fields_of_two_kinds_is_neither() {
    for (first, second) in KINDS.iter().flat_map(|a| KINDS.iter().map(move |b| (a, b))) {
        let mut both: Map<String, Value> = serde_json::from_slice(&(first.example)()).unwrap();
        let other: Map<String, Value> = serde_json::from_slice(&(second.example)()).unwrap();
        // Where one has all fields of the other, the names alone do not hold them apart: the values do.
        let most = both.len().max(other.len());
        both.extend(other);
        if both.len() > most && first.name != second.name {
            let merged = serde_json::to_vec(&both).unwrap();
            assert_eq!(readers(&merged), Vec::<&str>::new(), "{} and {}", first.name, second.name);
        }
    }
}

static ALL_FIELDS: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let fields =
        |kind: &Kind| serde_json::from_slice::<Map<String, Value>>(&(kind.example)()).expect("an object");
    KINDS.iter().flat_map(fields).collect()
});

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn a_request_string_with_any_body_is_no_document(body in any::<String>(), seconds in 0_i64..4_000_000_000) {
        let time = countersign_core::values::time::Timestamp::from_unix_seconds(seconds).expect("before 9999").to_header();
        let canonical = format!("{time}##{NONCE}##{body}");
        prop_assert!(readers(canonical.as_bytes()).is_empty());
    }

    /// Any selection of all the fields that there are, with the values that the examples give them.
    #[test]
    fn a_document_of_any_selection_of_fields_is_of_one_kind_at_most(choice in prop::collection::vec(any::<prop::sample::Index>(), 0..7)) {
        let document: Map<String, Value> = choice.iter().map(|index| index.get(&ALL_FIELDS).clone()).collect();
        let bytes = serde_json::to_vec(&document).expect("JSON");
        prop_assert!(readers(&bytes).len() <= 1, "{}", String::from_utf8_lossy(&bytes));
    }
}
