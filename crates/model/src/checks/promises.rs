//! Promises that several documents share.

use std::{collections::BTreeSet, fmt::Debug, fmt::Display};

use countersign_core::values::{json::ParseError, path::RepoPath, shown::is_unseen};
use serde_json::Value;

/// A document that is parsed strictly and written in one form (D5).
pub fn check_document<T: PartialEq + Debug>(
    data: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, ParseError>,
    write: impl Fn(&T) -> Vec<u8>,
) -> Option<T> {
    let document = parse(data).inspect_err(assert_shown).ok()?;
    assert_strict(data);
    let written = write(&document);
    let again = parse(&written).expect("what we write can be read");
    assert_eq!(again, document, "reading what was written gives the same");
    assert_eq!(write(&again), written, "there is one written form");
    assert!(written.ends_with(b"}\n") && written.starts_with(b"{\n  \""));
    assert_same_shape(&to_value(data), &to_value(&written));
    Some(document)
}

/// Messages contain nothing raw from outside (D39).
pub fn assert_shown(message: &impl Display) {
    let text = message.to_string();
    assert!(!text.chars().any(is_unseen), "{text:?}");
    assert!(!text.is_empty());
}

pub fn to_value(data: &[u8]) -> Value {
    serde_json::from_slice(data).expect("an accepted document is JSON")
}

/// Asserts that no name occurs twice. A lenient parser keeps one member of each name, and every member has one colon.
pub fn assert_no_duplicates(data: &[u8]) {
    let colons = outside_strings(data).filter(|byte| *byte == b':').count();
    assert_eq!(colons, count_members(&to_value(data)), "a name occurs twice");
}

/// Asserts that there are no duplicates, and only plain digits as numbers.
fn assert_strict(data: &[u8]) {
    assert_no_duplicates(data);
    let plain: Vec<u8> = outside_strings(data).collect();
    for token in plain.split(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte)) {
        let is_number = token.first().is_some_and(|first| !first.is_ascii_alphabetic());
        assert!(!is_number || token.iter().all(u8::is_ascii_digit), "{token:?}");
    }
}

fn outside_strings(data: &[u8]) -> impl Iterator<Item = u8> {
    let (mut inside, mut escaped) = (false, false);
    data.iter().copied().filter(move |byte| {
        let was_inside = inside;
        match byte {
            b'"' if !escaped => inside = !inside,
            _ => {}
        }
        escaped = was_inside && *byte == b'\\' && !escaped;
        !was_inside && *byte != b'"'
    })
}

fn count_members(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.len() + members.values().map(count_members).sum::<usize>(),
        Value::Array(items) => items.iter().map(count_members).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Asserts that writing neither loses nor adds anything. Only the spelling of times, keys and base64 can change.
fn assert_same_shape(read: &Value, written: &Value) {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            // The one field without meaning: keys are always Ed25519 (D8).
            let says_something = |(name, value): &(&String, &Value)| *name != "format" || !value.is_string();
            let names: BTreeSet<&String> = read.iter().filter(says_something).map(|(name, _)| name).collect();
            assert_eq!(names, written.keys().collect(), "{read:?} {written:?}");
            written.iter().for_each(|(name, value)| assert_same_shape(&read[name], value));
        }
        (Value::Array(read), Value::Array(written)) => {
            assert_eq!(read.len(), written.len());
            read.iter().zip(written).for_each(|(read, written)| assert_same_shape(read, written));
        }
        (Value::String(_), Value::String(_)) => {}
        // The seconds of a revocation (D20).
        (Value::Number(_), Value::String(_)) => {}
        (read, written) => assert_eq!(read, written),
    }
}

/// Asserts that a path is in its one form (D6). Each part is a path as well.
pub fn assert_path(path: &RepoPath) {
    let text = path.as_str();
    assert_eq!(RepoPath::parse(text).as_ref(), Ok(path), "a path reads as itself");
    assert_eq!(RepoPath::parse(&path.to_string()).as_ref(), Ok(path));
    assert!(text.len() <= 1_024 && path.segments().count() <= 64, "{text:?}");
    assert!(!text.starts_with('/') && !text.ends_with('/'), "{text:?}");
    for segment in text.split('/') {
        assert!(!matches!(segment, "" | "." | ".."), "{text:?}");
        assert!(!segment.eq_ignore_ascii_case(".git"), "{text:?}");
        assert!(!segment.chars().any(|c| c.is_control() || c == '\\'), "{text:?}");
    }
}
