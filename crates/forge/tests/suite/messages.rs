//! What strangers write into a file appears in our messages escaped and cut (D39).

use countersign_core::documents::signers::SignersFile;
use countersign_core::values::{bounds::SIGNERS_FILE_BYTES, digest::Sha256};
use countersign_forge::checksums::Checksums;
use countersign_testing::{alice, assert_mentions, signers};

const MAX_CHARS: usize = 1_000;
const HUNDRED_KB: usize = 100_000;

/// A line of its own, an escape sequence, and text that runs backwards.
const HOSTILE: &str = "a\nb\u{1b}[2Jc\u{202e}d";

/// Harmless to show, and long enough at most for a screen.
#[track_caller]
fn assert_safe(message: &str) {
    assert!(!message.chars().any(is_dangerous), "{message:?}");
    let length = message.chars().count();
    assert!(length <= MAX_CHARS, "{length} characters: {message}");
}

/// Control characters, and those that are invisible or turn the text round.
fn is_dangerous(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The message about a signers file with a field of this name, at the root and in a group.
fn unknown_field_messages(name: &str) -> [String; 2] {
    let name = serde_json::to_string(name).expect("JSON");
    let text = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).text();
    ["\"version\"", "\"threshold\""].map(|place| {
        let text = text.replacen(place, &format!("{name}: 1, {place}"), 1);
        assert!(text.len() <= SIGNERS_FILE_BYTES, "it must fail for its name, not for its size");
        SignersFile::parse(text.as_bytes()).expect_err("an unknown field").to_string()
    })
}

fn tag_message(tag: &str) -> String {
    let digest = Sha256::of(b"one");
    let text = format!("{digest}  good\n{tag} (app) = {digest}\n");
    let error = Checksums::default().add_file("SHA256SUMS", text.as_bytes()).expect_err("an unknown tag");
    assert_mentions(&error.to_string(), &["SHA256SUMS", "line 2"]);
    error.to_string()
}

#[test]
fn the_name_of_an_unknown_field_is_escaped_and_cut_where_it_gets_long() {
    for message in unknown_field_messages(HOSTILE) {
        assert_safe(&message);
        assert_mentions(&message, &["unknown field", r"a\u{a}b\u{1b}[2Jc\u{202e}d"]);
    }
    let long = ["x", "ü"].map(|text| text.repeat(HUNDRED_KB));
    let escaped = ["\n", "\u{1b}", "\u{202e}"].map(|text| text.repeat(HUNDRED_KB / 6));
    for name in long.iter().chain(&escaped).chain([&format!("{HOSTILE}{}", long[0])]) {
        for message in unknown_field_messages(name) {
            assert_safe(&message);
            assert_mentions(&message, &["unknown field", "…"]);
        }
    }
}

#[test]
fn a_name_that_occurs_twice_is_escaped_and_cut() {
    for name in [HOSTILE.to_owned(), "x".repeat(HUNDRED_KB), HOSTILE.repeat(5_000)] {
        let name = serde_json::to_string(&name).expect("JSON");
        let text = format!("{{{name}: 1, {name}: 2}}");
        assert_safe(&SignersFile::parse(text.as_bytes()).expect_err("no signers file").to_string());
    }
}

#[test]
fn values_that_are_refused_are_escaped_and_cut() {
    let text = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).text();
    let key = alice().public_key().to_string();
    for value in [HOSTILE.to_owned(), HOSTILE.repeat(5_000)] {
        let spelled = serde_json::to_string(&value).expect("JSON");
        for place in ["\"2026-01-31T10:00:00Z\"".to_owned(), "\"key\"".to_owned(), format!("\"{key}\"")] {
            let text = text.replacen(&place, &spelled, 1);
            assert_safe(&SignersFile::parse(text.as_bytes()).expect_err(&place).to_string());
        }
    }
}

#[test]
fn the_tag_of_a_checksums_line_is_escaped_and_cut_where_it_gets_long() {
    let message = tag_message("MD5\r\u{1b}[2J\u{202e}\u{2028}");
    assert_safe(&message);
    assert_mentions(&message, &[r"MD5\u{d}\u{1b}[2J\u{202e}\u{2028} is not supported"]);
    for repeated in ["x", "ü", "\r", "\u{1b}", "\u{202e}"] {
        assert_safe(&tag_message(&repeated.repeat(HUNDRED_KB)));
    }
    let error = Checksums::default().add_file("SUMS", b"MD5\nMD4 (app) = 00\n").expect_err("no checksum");
    assert_eq!(error.line, 1, "a newline ends the line and with it the tag");
    assert_safe(&error.to_string());
}

#[test]
fn a_file_name_that_is_refused_is_escaped_and_cut() {
    let digest = Sha256::of(b"one");
    for name in ["a\u{1b}[2Jb\u{202e}c".to_owned(), format!("\u{202e}{}", "x/".repeat(HUNDRED_KB / 2))] {
        for line in [format!("{digest}  {name}\n"), format!("SHA256 ({name}) = {digest}\n")] {
            let error = Checksums::default().add_file("SUMS", line.as_bytes()).expect_err("a bad name");
            assert_safe(&error.to_string());
        }
    }
}
