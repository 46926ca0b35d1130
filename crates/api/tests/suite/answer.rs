//! A server's answers as its client reads them: our own server's, and those of a hostile one.

use std::collections::BTreeMap;

use countersign_api::{
    answers as api,
    reading::{
        PingAuth, parse_chain, parse_error, parse_files_to_sign, parse_pending, parse_ping, parse_proposed,
        parse_registered_release, parse_revoked, parse_signed,
    },
};
use countersign_core::{
    rules::query::WaitingList,
    values::{json::ParseError, key::encode_base64},
};
use countersign_testing::{INDEX, PENDING, PENDING_METADATA, PROJECT, alice, bob, evidence::rotated, path};
use serde::Serialize;

fn json(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).expect("JSON")
}

#[test]
fn the_answers_of_our_own_server_are_read() {
    let keys = [alice().public_key(), bob().public_key()];
    let proposed = parse_proposed(&json(&api::ProposedResponse {
        success: true,
        project_id: PROJECT.to_owned(),
        message: "…",
        required_signers: keys.iter().map(|key| key.to_base64()).collect(),
        signature_submission_url: "/v1/signatures",
    }))
    .expect("an answer");
    assert_eq!((proposed.project_id, proposed.required_signers), (path(PROJECT), keys.to_vec()));
    for is_complete in [true, false] {
        assert_eq!(parse_signed(&json(&api::SignedResponse { is_complete })), Ok(is_complete));
        let answer = api::RevokedResponse { success: true, message: "…", revoked: is_complete };
        assert_eq!(parse_revoked(&json(&answer)), Ok(is_complete));
    }
    let history = rotated(PROJECT).history;
    assert_eq!(parse_chain(&json(&api::ChainResponse { history: history.clone() })), Ok(history));
    for left_out in [None, Some(7)] {
        let file_paths = vec![INDEX.to_owned(), PENDING.to_owned()];
        let read = parse_pending(&json(&api::PendingResponse { file_paths, left_out }));
        let paths = vec![path(INDEX), path(PENDING)];
        assert_eq!(read, Ok(WaitingList { paths, left_out: left_out.unwrap_or(0) }));
    }
    let made = api::AssetsResponse { success: true, message: "…", index_file_path: INDEX.to_owned() };
    assert_eq!(parse_registered_release(&json(&made)), Ok(path(INDEX)));
    let error = api::ErrorResponse { error: "no".to_owned() };
    assert_eq!(parse_error(&json(&error)).as_deref(), Some("no"));
}

#[test]
fn the_pings_of_our_own_server_are_read() {
    let ping = |auth| parse_ping(&json(&api::PingResponse { message: "pong", auth })).expect("an answer");
    let key = alice().public_key();
    assert_eq!(ping(api::PingAuth::Unauthenticated), PingAuth::Unauthenticated);
    let success = api::PingAuth::Success { public_key: key.to_string() };
    assert_eq!(ping(success), PingAuth::Success { public_key: key });
    for public_key in [None, Some(key.to_string())] {
        let failed = api::PingAuth::Failed { public_key, reason: "old".to_owned() };
        assert_eq!(ping(failed), PingAuth::Failed { reason: "old".to_owned() });
    }
}

#[test]
fn a_ping_that_is_none_is_refused() {
    for answer in [
        r#"{"auth": {"status": "unauthenticated"}}"#,
        r#"{"message": "PONG", "auth": {"status": "unauthenticated"}}"#,
        r#"{"message": "pong"}"#,
        r#"{"message": "pong", "auth": null}"#,
        r#"{"message": "pong", "auth": {"status": "Success", "public_key": "x"}}"#,
        r#"{"message": "pong", "auth": {"status": "success"}}"#,
        r#"{"message": "pong", "auth": {"status": "success", "public_key": "svc-pub:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}"#,
        r#"{"message": "pong", "auth": {"status": "failed"}}"#,
        r#"{"message": "pong", "auth": {"status": "failed", "status": "success"}}"#,
    ] {
        assert!(parse_ping(answer.as_bytes()).is_err(), "{answer}");
    }
}

#[test]
fn files_to_sign_are_text_under_normalised_paths() {
    let files = BTreeMap::from([
        (PENDING.to_owned(), encode_base64(b"one\n")),
        (PENDING_METADATA.to_owned(), encode_base64("zw\u{f6}lf".as_bytes())),
    ]);
    let read = parse_files_to_sign(&json(&api::FilesToSignResponse { files })).expect("files");
    let expected = [(path(PENDING), "one\n".to_owned()), (path(PENDING_METADATA), "zw\u{f6}lf".to_owned())];
    assert_eq!(read, BTreeMap::from(expected));
}

#[test]
fn files_to_sign_that_are_ambiguous_or_no_text_are_refused() {
    let one = encode_base64(b"one");
    for (what, files) in [
        ("two spellings", format!(r#"{{"{INDEX}": "{one}", "{}": "{one}"}}"#, INDEX.replace("/443/", "/"))),
        ("a trailing slash", format!(r#"{{"{INDEX}": "{one}", "{INDEX}/": "{one}"}}"#)),
        ("one name twice", format!(r#"{{"{INDEX}": "{one}", "{INDEX}": "{one}"}}"#)),
        ("a dot segment", format!(r#"{{"https/x/443/../a": "{one}"}}"#)),
        ("no path", format!(r#"{{"": "{one}"}}"#)),
        ("not UTF-8", format!(r#"{{"{INDEX}": "{}"}}"#, encode_base64(b"\xff\xfe"))),
        ("another alphabet", format!(r#"{{"{INDEX}": "_-8="}}"#)),
        ("a space", format!(r#"{{"{INDEX}": "b25l "}}"#)),
        ("a line break", format!(r#"{{"{INDEX}": "b25l\n"}}"#)),
        ("trailing bits", format!(r#"{{"{INDEX}": "b25lYf=="}}"#)),
        ("a list", format!(r#"[["{INDEX}", "{one}"]]"#)),
        ("no string", format!(r#"{{"{INDEX}": null}}"#)),
    ] {
        let answer = format!(r#"{{"files": {files}}}"#);
        assert!(parse_files_to_sign(answer.as_bytes()).is_err(), "{what}: {answer}");
    }
    assert_eq!(parse_files_to_sign(br#"{"files": {}}"#), Ok(BTreeMap::new()));
}

type Reader = fn(&[u8]) -> Result<(), ParseError>;

/// Each reader without what it reads, for what a hostile server could send to any of them.
fn readers() -> Vec<(&'static str, Reader)> {
    vec![
        ("proposed", |bytes| parse_proposed(bytes).map(drop)),
        ("signed", |bytes| parse_signed(bytes).map(drop)),
        ("files", |bytes| parse_files_to_sign(bytes).map(drop)),
        ("chain", |bytes| parse_chain(bytes).map(drop)),
        ("pending", |bytes| parse_pending(bytes).map(drop)),
        ("release", |bytes| parse_registered_release(bytes).map(drop)),
        ("revoked", |bytes| parse_revoked(bytes).map(drop)),
        ("ping", |bytes| parse_ping(bytes).map(drop)),
    ]
}

#[test]
fn what_is_no_answer_is_refused_by_every_reader() {
    let deep = [b"[".repeat(200_000), b"]".repeat(200_000)].concat();
    let answers: [&[u8]; 12] = [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"true",
        b"<html>",
        b"\xff",
        b"\xef\xbb\xbf{}",
        br#"{"error": "no"}"#,
        br#"{"is_complete": "true", "revoked": 1, "index_file_path": null, "file_paths": {}, "files": []}"#,
        br#"{"is_complete": true, "is_complete": true, "revoked": true, "index_file_path": "a", "file_paths": [], "files": {}, "history": {"entries": []}}"#,
        &deep,
    ];
    for (name, read) in readers() {
        for answer in answers {
            assert!(
                read(answer).is_err(),
                "{name}: {}",
                String::from_utf8_lossy(&answer[..answer.len().min(80)])
            );
        }
    }
}

#[test]
fn fields_that_we_do_not_know_may_be_there() {
    assert_eq!(parse_signed(br#"{"is_complete": true, "more": {"x": [1.5, -1, null]}}"#), Ok(true));
    assert_eq!(parse_revoked(br#"{"revoked": false, "success": true, "note": ""}"#), Ok(false));
    // But not inside the history, which is a document.
    assert!(parse_chain(br#"{"history": {"entries": []}, "more": 1}"#).is_ok());
    assert!(parse_chain(br#"{"history": {"entries": [], "more": 1}}"#).is_err());
}

#[test]
fn paths_in_answers_are_normalised_or_refused() {
    let release =
        |text: &str| parse_registered_release(format!(r#"{{"index_file_path": "{text}"}}"#).as_bytes());
    assert_eq!(release(&INDEX.replace("https/github.com/443", "HTTPS/GitHub.com")), Ok(path(INDEX)));
    for text in ["", "/", "../a", "a/../b", "a//b", "a\\\\b", "a/.git/b", "a\\u001bb", "a\\u0000"] {
        assert!(release(text).is_err(), "{text}");
        assert!(parse_pending(format!(r#"{{"file_paths": ["{text}"]}}"#).as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn weak_and_foreign_keys_in_answers_are_refused() {
    for key in ["AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "", "AAAA", "ssh-rsa AAAA"] {
        let answer = format!(r#"{{"project_id": "{PROJECT}", "required_signers": ["{key}"]}}"#);
        assert!(parse_proposed(answer.as_bytes()).is_err(), "{key}");
    }
}

#[test]
fn an_error_is_read_where_there_is_one() {
    for answer in
        ["", "no", "{}", "[]", r#"{"error": 1}"#, r#"{"error": null}"#, r#"{"error": "a", "error": "b"}"#]
    {
        assert_eq!(parse_error(answer.as_bytes()), None, "{answer}");
    }
    assert_eq!(parse_error(br#"{"error": "", "more": 1}"#).as_deref(), Some(""));
}

#[test]
fn what_a_server_sends_is_escaped_in_our_messages() {
    let hostile = r#"{"files": {"a/\u202e\u001b[2J": "!"}, "file_paths": ["\u001b[2J\u202e"], "index_file_path": "\u001b\u202e"}"#;
    for error in [
        parse_files_to_sign(hostile.as_bytes()).expect_err("no base64"),
        parse_pending(hostile.as_bytes()).expect_err("no path"),
        parse_registered_release(hostile.as_bytes()).expect_err("no path"),
    ] {
        let message = error.to_string();
        assert!(!message.contains(['\u{1b}', '\u{202e}']), "{message:?}");
    }
}
