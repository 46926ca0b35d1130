//! JSON that is signed, stored or shown as a proof is read strictly, at every depth (D5).

use countersign_core::proof::{bundle::Bundle, bundle::Staple, state_lie::StateLie, trust::TrustStore};
use countersign_testing::documents::{KINDS, Kind, kind, pointers};
use serde_json::Value;

use crate::proof::{bundle, freshness, state_lie, trust};

/// Documents and proofs.
fn all_kinds() -> impl Iterator<Item = Kind> {
    let proofs = [
        Kind::of("bundle", |b| Bundle::parse(b).map(|d| d.write()), bundle::example),
        Kind::of("staple", |b| Staple::parse(b).map(|d| d.write()), || freshness::staple().write()),
        Kind::of("trust store", |b| TrustStore::parse(b).map(|d| d.write()), || trust::full_store().write()),
        Kind::of("lie", |b| StateLie::parse(b).map(|d| d.write()), || state_lie::example().write()),
    ];
    KINDS.into_iter().chain(proofs)
}

/// Whether the names of an object are data, and not fields: they may be anything that parses.
fn is_map(place: &str) -> bool {
    let maps = [
        "/entries", "/other_formats", "/objections", "/rebuilds", "/projects", "/revocations", "/logs",
        "/indexes", "/change",
    ];
    maps.iter().any(|end| place.ends_with(end))
}

/// An example, and all its places, of which the first is the whole.
fn all_places(kind: &Kind) -> (Value, Vec<String>) {
    let document: Value = serde_json::from_slice(&(kind.example)()).expect("an example is JSON");
    let places = [String::new()].into_iter().chain(pointers(&document)).collect();
    (document, places)
}

/// The document with another value at this place.
fn with(document: &Value, place: &str, value: Value) -> String {
    let mut changed = document.clone();
    *changed.pointer_mut(place).expect("the place exists") = value;
    changed.to_string()
}

#[track_caller]
fn assert_refused(kind: &Kind, text: &str) {
    assert!((kind.rewrite)(text.as_bytes()).is_err(), "a {} is read from {text}", kind.name);
}

#[test]
fn an_unknown_field_is_refused_in_every_object() {
    let mut objects = 0;
    for kind in all_kinds() {
        let (document, places) = all_places(&kind);
        for place in places {
            let mut changed = document.clone();
            let Some(Value::Object(members)) = changed.pointer_mut(&place) else { continue };
            members.insert("extra".to_owned(), Value::String("x".to_owned()));
            let error = (kind.rewrite)(changed.to_string().as_bytes()).expect_err(&place).to_string();
            assert!(is_map(&place) || error.contains("extra"), "{} {place}: {error}", kind.name);
            objects += 1;
        }
    }
    assert!(objects > 80, "only {objects} objects were tried");
}

#[test]
fn a_missing_field_is_refused_unless_it_is_optional() {
    let optional = [
        "admin_keys", "master_keys", "revocation_keys", "registrars", "rebuilds", "servers", "transparency",
        "formats", "format", "rotation_delay_hours", "agreed_at", "name", "subject_digest", "initiator",
        "sha256", "sha512", "minisign", "openpgp", "ssh",
    ];
    for kind in all_kinds() {
        let (document, places) = all_places(&kind);
        for place in places {
            let Some((parent, name)) = place.rsplit_once('/') else { continue };
            if optional.contains(&name) || is_map(parent) {
                continue;
            }
            let mut changed = document.clone();
            let Some(Value::Object(members)) = changed.pointer_mut(parent) else { continue };
            members.remove(&name.replace("~1", "/")).expect("the place exists");
            assert_refused(&kind, &changed.to_string());
        }
    }
}

/// Whether something may be absent here. A change has null for what it deletes.
fn is_nullable(place: &str) -> bool {
    let ends = [
        "/previous", "/release_url", "/published_on", "/size", "/objection", "/revocation", "/request",
        "/staple", "/before",
    ];
    ends.iter().any(|end| place.ends_with(end)) || place.starts_with("/change/")
}

#[test]
fn null_is_refused_where_it_has_no_meaning() {
    for kind in all_kinds() {
        let (document, places) = all_places(&kind);
        for place in places.iter().filter(|place| !is_nullable(place)) {
            assert_refused(&kind, &with(&document, place, Value::Null));
        }
    }
}

#[test]
fn null_is_read_where_it_means_none() {
    for (name, places) in [
        ("metadata", vec!["/previous"]),
        ("objection", vec!["/objection"]),
        ("index", vec!["/release_url", "/published_on", "/published_files/0/size"]),
        ("bundle", vec!["/revocation", "/revocation/request", "/staple"]),
    ] {
        let kind = all_kinds().find(|kind| kind.name == name).expect("a kind");
        let (document, _) = all_places(&kind);
        for place in places {
            let changed = with(&document, place, Value::Null);
            assert!((kind.rewrite)(changed.as_bytes()).is_ok(), "{name} {place}");
        }
    }
}

#[test]
fn a_value_of_another_type_is_refused_everywhere() {
    // Text that means nothing to us may be any text, and so may what is read when it is verified.
    let free_texts = [
        "url", "retrieval_url", "release_url", "source", "payload", "reason", "objection", "veto",
        "signers_config", "metadata", "index", "document", "origin_url", "minisign", "openpgp", "ssh",
    ];
    for kind in all_kinds() {
        let (document, places) = all_places(&kind);
        for place in &places {
            let (value, name) = (&document.pointer(place).expect("a value"), place.rsplit('/').next());
            let is_free = value.is_string() && name.is_some_and(|name| free_texts.contains(&name));
            for other in
                [Value::Bool(true), Value::Array(vec![Value::Bool(false)]), Value::String("\u{1}".to_owned())]
            {
                if **value != other && !(is_free && other.is_string()) {
                    assert_refused(&kind, &with(&document, place, other));
                }
            }
        }
    }
}

#[test]
fn a_name_that_occurs_twice_is_refused_at_every_depth() {
    let mut tried = 0;
    for kind in all_kinds() {
        let text = kind.example_text();
        for (start, line) in line_starts(&text) {
            let Some((name, _)) = line.trim_start().split_once(": ") else { continue };
            // A second member of the same name, before the first, with a value that would do.
            let value = member_value(&text[start..]);
            for spelling in [name.to_owned(), escape_first_letter(name)] {
                let doubled = format!("{}{spelling}: {value}, {}", &text[..start], &text[start..]);
                assert!(serde_json::from_str::<Value>(&doubled).is_ok(), "the test itself broke {doubled}");
                assert_refused(&kind, &doubled);
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "only {tried} names were tried");
}

fn line_starts(text: &str) -> Vec<(usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n')
        .map(|line| {
            start += line.len();
            (start - line.len(), line)
        })
        .collect()
}

/// The text of the value of the member at the beginning of `text`.
fn member_value(text: &str) -> String {
    let (_, rest) = text.split_once(": ").expect("a member");
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    values.next().expect("a value").expect("valid JSON").to_string()
}

/// `"name"` → `"\u006eame"`, the same name in JSON.
fn escape_first_letter(name: &str) -> String {
    let first = name.as_bytes()[1];
    format!("\"\\u{:04x}{}", first, &name[2..])
}

#[test]
fn integers_are_plain_digits() {
    let integers = [
        ("signers file", "\"version\": 1"),
        ("signers file", "\"threshold\": 1"),
        ("metadata", "\"version\": 1"),
        ("index", "\"version\": 1"),
        ("index", "\"size\": 3"),
        ("marker", "\"format\": 1"),
    ];
    for (name, member) in integers {
        let kind = kind(name);
        let text = kind.example_text();
        let (field, digits) = member.split_once(": ").unwrap();
        assert!(text.contains(member), "{name} has no {member}");
        let other_spellings = [
            format!("{digits}.0"),
            format!("{digits}e0"),
            format!("{digits}E0"),
            format!("{digits}0e-1"),
            format!("0{digits}"),
            format!("+{digits}"),
            format!("-{digits}"),
            "-0".to_owned(),
            format!("\"{digits}\""),
            "18446744073709551616".to_owned(),
            "true".to_owned(),
        ];
        for spelling in other_spellings {
            assert_refused(&kind, &text.replacen(member, &format!("{field}: {spelling}"), 1));
        }
    }
}

#[test]
fn the_seconds_of_a_revocation_are_plain_digits() {
    let kind = kind("revocation");
    for spelling in
        ["1.0", "1e0", "1e9", "-0", "-1", "01", "\"1\"", "99999999999999999999", "9223372036854775807"]
    {
        assert_refused(&kind, &format!(r#"{{"reason": "x", "timestamp": {spelling}}}"#));
    }
}

#[test]
fn what_is_not_one_text_of_json_is_refused_without_a_crash() {
    let broken: [fn(&str) -> String; 18] = [
        |text| format!("\u{feff}{text}"),
        |text| format!("{text}x"),
        |text| format!("{text}{{}}"),
        |text| format!("{text}null"),
        |text| format!("{text}\0"),
        |text| format!("{text},"),
        |text| format!("{text}}}"),
        |text| format!("{text}\u{feff}"),
        |text| format!("{text}// end"),
        |text| format!("{text}{text}"),
        |_| String::new(),
        |_| " ".to_owned(),
        |text| text[..text.len() - 3].to_owned(),
        |text| text.replacen("{\n", "{\n// comment\n", 1),
        |text| text.replace("\n}\n", ",\n}\n"),
        |text| text.replace('"', "'"),
        |_| "[".repeat(200_000),
        |_| "{\"a\":".repeat(200_000),
    ];
    for kind in all_kinds() {
        let text = kind.example_text();
        broken.iter().for_each(|broken| assert_refused(&kind, &broken(&text)));
        let mut not_utf8 = text.into_bytes();
        not_utf8[5] = 0xff;
        assert!((kind.rewrite)(&not_utf8).is_err(), "{}", kind.name);
    }
}

#[test]
fn refusals_name_the_field() {
    for (name, from, to, field) in [
        ("signers file", "\"threshold\": 2", "\"threshold\": 0", "artifact_signers[0].threshold"),
        ("signers file", "\"kind\": \"key\"", "\"kind\": \"kye\"", "artifact_signers[0].signers[0].kind"),
        ("metadata", "\"kind\": \"file_server\"", "\"kind\": \"x\"", "origin.kind"),
        ("metadata", "\"previous\": \"sha512:", "\"previous\": \"sha256:", "previous"),
        ("metadata", "https/github.com/443/", "https/GitHub.com/443/", "project_id"),
        ("index", "\"file_name\": \"app", "\"file_name\": \"/app", "published_files[0].file_name"),
        ("index", "\"file_name\": \"sub", "\"file_name\": \"aaa", "published_files"),
        ("history", "\"metadata_signatures\"", "\"metadata_signature\"", "entries[0].metadata_signature"),
        ("registration", "+00:00", "Z", "timestamp"),
        ("marker", "created_at", "created", "created"),
    ] {
        let text = kind(name).example_text();
        assert!(text.contains(from), "{name} has no {from}");
        let error = (kind(name).rewrite)(text.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert_eq!(error.field, field, "{name}: {error}");
        countersign_testing::assert_mentions(&error.to_string(), &[field]);
    }
}

#[test]
fn digests_are_lower_case_and_of_full_length() {
    for (name, field) in [
        ("metadata", "\"signers_file_digest\": \"sha512:"),
        ("revocation", "\"subject_digest\": \"sha512:"),
        ("index", "\"sha256\": \""),
    ] {
        let text = kind(name).example_text();
        let start = text.find(field).expect("the field") + field.len();
        let end = start + text[start..].find('"').expect("its end");
        let hex = &text[start..end];
        for other in
            [hex.to_uppercase(), hex[2..].to_owned(), format!("{hex}00"), hex.replacen(&hex[..1], "g", 1)]
        {
            assert_refused(&kind(name), &format!("{}{other}{}", &text[..start], &text[end..]));
        }
    }
}
