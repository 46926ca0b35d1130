//! JSON that is signed or stored is read strictly, at every depth (D5).

use countersign_testing::documents::{KINDS, Kind, kind};
use serde_json::Value;

/// Names of objects that are data, and not fields: they may be anything that parses.
fn is_map(place: &str) -> bool {
    ["/entries", "/other_formats", "/objections", "/rebuilds"].iter().any(|end| place.ends_with(end))
}

/// Every value of a document, by its JSON pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                places(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (i, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{i}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn all_places(kind: &Kind) -> (Value, Vec<String>) {
    let document: Value = serde_json::from_slice(&(kind.example)()).expect("an example is JSON");
    let mut found = Vec::new();
    places(&document, "", &mut found);
    (document, found)
}

#[track_caller]
fn assert_refused(kind: &Kind, text: &str) {
    assert!((kind.rewrite)(text.as_bytes()).is_err(), "a {} is read from {text}", kind.name);
}

/// A pointer cannot hold a `/` of a key, so only places without one are visited.
fn get_mut<'a>(document: &'a mut Value, place: &str) -> Option<&'a mut Value> {
    document.pointer_mut(place)
}

#[test]
fn an_unknown_field_is_refused_in_every_object() {
    let mut objects = 0;
    for kind in KINDS {
        let (document, places) = all_places(&kind);
        for place in places {
            let mut changed = document.clone();
            let Some(Value::Object(members)) = get_mut(&mut changed, &place) else { continue };
            members.insert("extra".to_owned(), Value::String("x".to_owned()));
            assert_refused(&kind, &changed.to_string());
            objects += 1;
        }
    }
    assert!(objects > 40, "only {objects} objects were tried");
}

#[test]
fn a_missing_field_is_refused_unless_it_is_optional() {
    let optional = [
        "admin_keys", "master_keys", "revocation_keys", "registrars", "rebuilds", "transparency",
        "rotation_delay_hours", "agreed_at", "name", "subject_digest", "initiator", "sha256", "sha512",
        "minisign", "openpgp", "ssh",
    ];
    for kind in KINDS {
        let (document, places) = all_places(&kind);
        for place in places {
            let Some((parent, name)) = place.rsplit_once('/') else { continue };
            if optional.contains(&name) || is_map(parent) {
                continue;
            }
            let mut changed = document.clone();
            let Some(Value::Object(members)) = get_mut(&mut changed, parent) else { continue };
            members.remove(name).expect("the place exists");
            assert_refused(&kind, &changed.to_string());
        }
    }
}

#[test]
fn null_is_refused_where_it_has_no_meaning() {
    let nullable = ["/previous", "/release_url", "/published_on", "/size", "/objection"];
    for kind in KINDS {
        let (document, places) = all_places(&kind);
        for place in places.iter().filter(|place| !nullable.iter().any(|end| place.ends_with(end))) {
            let mut changed = document.clone();
            let Some(value) = get_mut(&mut changed, place) else { continue };
            *value = Value::Null;
            assert_refused(&kind, &changed.to_string());
        }
    }
}

#[test]
fn null_is_read_where_it_means_none() {
    for (name, places) in [
        ("metadata", vec!["/previous"]),
        ("objection", vec!["/objection"]),
        ("index", vec!["/release_url", "/published_on", "/published_files/0/size"]),
    ] {
        let (document, _) = all_places(&kind(name));
        for place in places {
            let mut changed = document.clone();
            *changed.pointer_mut(place).expect("the place exists") = Value::Null;
            assert!((kind(name).rewrite)(changed.to_string().as_bytes()).is_ok(), "{name} {place}");
        }
    }
}

#[test]
fn a_value_of_another_type_is_refused_everywhere() {
    for kind in KINDS {
        let (document, places) = all_places(&kind);
        for place in &places {
            for other in
                [Value::Bool(true), Value::Array(vec![Value::Bool(false)]), Value::String("\u{1}".to_owned())]
            {
                let mut changed = document.clone();
                let Some(value) = get_mut(&mut changed, place) else { continue };
                // Text that means nothing to us may be any text.
                let is_free_text = [
                    "url", "retrieval_url", "release_url", "source", "payload", "reason", "objection",
                    "veto", "signers_config", "metadata", // Read when they are verified.
                    "minisign", "openpgp", "ssh",
                ];
                let name = place.rsplit('/').next().unwrap_or_default();
                if *value == other {
                    continue;
                }
                if value.is_string() && other.is_string() && is_free_text.contains(&name) {
                    continue;
                }
                *value = other;
                assert_refused(&kind, &changed.to_string());
            }
        }
    }
}

#[test]
fn a_name_that_occurs_twice_is_refused_at_every_depth() {
    let mut tried = 0;
    for kind in KINDS {
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
fn a_byte_order_mark_is_refused() {
    for kind in KINDS {
        assert_refused(&kind, &format!("\u{feff}{}", kind.example_text()));
    }
}

#[test]
fn anything_after_the_document_is_refused() {
    for kind in KINDS {
        let text = kind.example_text();
        for garbage in ["x", "{}", "null", "\0", ",", "}", "\u{feff}", "// end"] {
            assert_refused(&kind, &format!("{text}{garbage}"));
        }
        assert_refused(&kind, &format!("{text}{text}"));
    }
}

#[test]
fn text_that_is_no_json_is_refused() {
    for kind in KINDS {
        let text = kind.example_text();
        for broken in [
            String::new(),
            " ".to_owned(),
            text[..text.len() - 3].to_owned(),
            text.replacen("{\n", "{\n// comment\n", 1),
            text.replace("\n}\n", ",\n}\n"),
            text.replace('"', "'"),
        ] {
            assert_refused(&kind, &broken);
        }
        let mut not_utf8 = text.into_bytes();
        not_utf8[5] = 0xff;
        assert!((kind.rewrite)(&not_utf8).is_err(), "{}", kind.name);
    }
}

#[test]
fn deep_nesting_is_refused_without_a_crash() {
    for kind in KINDS {
        assert_refused(&kind, &"[".repeat(200_000));
        assert_refused(&kind, &"{\"a\":".repeat(200_000));
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

#[test]
fn signatures_name_each_key_in_its_one_spelling() {
    let text = kind("signatures").example_text();
    let key = countersign_testing::alice().public_key();
    assert!(text.contains(&key.to_string()));
    for other in [format!("{key}="), key.to_base64()] {
        assert_refused(&kind("signatures"), &text.replacen(&key.to_string(), &other, 1));
    }
}
