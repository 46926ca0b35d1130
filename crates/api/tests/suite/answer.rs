//! A server's answers as its client reads them: our own server's, and those of a hostile one.

use std::collections::{BTreeMap, BTreeSet};

use countersign_api::answers::{
    AssetsResponse, ChainResponse, ErrorBody, ErrorResponse, FilesToSignResponse, PendingResponse, PingAuth,
    PingResponse, ProposedResponse, ReplacedIndex, RevokedResponse, SignedResponse,
};
use countersign_api::catalogue::{
    KeyPendingResponse, KeyResponse, KeySignedResponse, ProjectsResponse, ReleasesResponse,
};
use countersign_api::error_code::ErrorCode;
use countersign_core::values::{json::ParseError, key::encode_base64};
use countersign_testing::{
    INDEX, PENDING, PENDING_METADATA, PROJECT, alice, at, bob, evidence::rotated, path,
};
use serde::Serialize;
use serde_json::json;

fn bytes(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).expect("JSON")
}

#[test]
fn the_answers_of_our_own_server_are_read() {
    let keys = vec![alice().public_key(), bob().public_key()];
    let proposed = ProposedResponse::new(path(PROJECT), keys.clone(), "…");
    let written = serde_json::to_value(&proposed).expect("JSON");
    let expected = json!({
        "success": true,
        "project_id": PROJECT,
        "message": "…",
        "required_signers": keys.iter().map(|key| key.to_base64()).collect::<Vec<_>>(),
        "signature_submission_url": "/v1/signatures",
    });
    assert_eq!(written, expected);
    assert_eq!(ProposedResponse::parse(&bytes(&proposed)), Ok(proposed));
    for is_complete in [true, false] {
        let waits_until = is_complete.then(|| at("2026-02-03T12:00:00Z"));
        let signed = SignedResponse { is_complete, waits_until };
        assert_eq!(SignedResponse::parse(&bytes(&signed)), Ok(signed));
        let revoked = RevokedResponse { success: true, message: "…".to_owned(), revoked: is_complete };
        assert_eq!(RevokedResponse::parse(&bytes(&revoked)), Ok(revoked));
    }
    let chain = ChainResponse { history: rotated(PROJECT).history };
    assert_eq!(ChainResponse::parse(&bytes(&chain)), Ok(chain));
    for left_out in [0, 7] {
        let file_paths = vec![path(INDEX), path(PENDING)];
        let (revocations, rebuilds, objections) = Default::default();
        let pending = PendingResponse { file_paths, left_out, revocations, rebuilds, objections };
        let mut expected = json!({"file_paths": [INDEX, PENDING]});
        if left_out > 0 {
            expected["left_out"] = json!(left_out);
        }
        assert_eq!(serde_json::to_value(&pending).expect("JSON"), expected);
        assert_eq!(PendingResponse::parse(&bytes(&pending)), Ok(pending));
    }
    for replaced in [None, Some(ReplacedIndex { signatures: vec![alice().public_key()] })] {
        let message = "…".to_owned();
        let made = AssetsResponse { success: true, message, index_file_path: path(INDEX), replaced };
        assert_eq!(AssetsResponse::parse(&bytes(&made)), Ok(made));
    }
    for code in ErrorCode::ALL {
        let told = ErrorBody::parse(&bytes(&ErrorResponse { error: "no".to_owned(), code }));
        let told = told.unwrap_or_else(|| panic!("{code:?} is not read"));
        assert_eq!((told.error.as_str(), told.code.as_deref()), ("no", Some(code.name())));
        assert_eq!(told.known_code(), Some(code));
    }
}

#[test]
fn the_pings_of_our_own_server_are_read() {
    let key = alice().public_key();
    let failed = |public_key| PingAuth::Failed { public_key, reason: "old".to_owned() };
    for (auth, written) in [
        (PingAuth::Unauthenticated, json!({"status": "unauthenticated"})),
        (PingAuth::Success { public_key: key }, json!({"status": "success", "public_key": key.to_string()})),
        (failed(None), json!({"status": "failed", "public_key": null, "reason": "old"})),
        (failed(Some(key)), json!({"status": "failed", "public_key": key.to_string(), "reason": "old"})),
    ] {
        let ping = PingResponse::new(auth);
        let expected = json!({"message": "pong", "auth": written});
        assert_eq!(serde_json::to_value(&ping).expect("JSON"), expected);
        assert_eq!(PingResponse::parse(&bytes(&ping)), Ok(ping));
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
        assert!(PingResponse::parse(answer.as_bytes()).is_err(), "{answer}");
    }
}

#[test]
fn files_to_sign_are_text_under_normalised_paths() {
    let texts = [(path(PENDING), "one\n".to_owned()), (path(PENDING_METADATA), "zw\u{f6}lf".to_owned())];
    let answer = FilesToSignResponse { files: BTreeMap::from(texts) };
    let files =
        json!({PENDING: encode_base64(b"one\n"), PENDING_METADATA: encode_base64("zw\u{f6}lf".as_bytes())});
    assert_eq!(serde_json::to_value(&answer).expect("JSON"), json!({"files": files}));
    assert_eq!(FilesToSignResponse::parse(&bytes(&answer)), Ok(answer));
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
        assert!(FilesToSignResponse::parse(answer.as_bytes()).is_err(), "{what}: {answer}");
    }
    assert_eq!(
        FilesToSignResponse::parse(br#"{"files": {}}"#),
        Ok(FilesToSignResponse { files: BTreeMap::new() })
    );
}

type Reader = fn(&[u8]) -> Result<(), ParseError>;

/// Each reader without what it reads, for what a hostile server could send to any of them.
fn readers() -> Vec<(&'static str, Reader)> {
    vec![
        ("proposed", |bytes| ProposedResponse::parse(bytes).map(drop)),
        ("signed", |bytes| SignedResponse::parse(bytes).map(drop)),
        ("files", |bytes| FilesToSignResponse::parse(bytes).map(drop)),
        ("chain", |bytes| ChainResponse::parse(bytes).map(drop)),
        ("pending", |bytes| PendingResponse::parse(bytes).map(drop)),
        ("release", |bytes| AssetsResponse::parse(bytes).map(drop)),
        ("revoked", |bytes| RevokedResponse::parse(bytes).map(drop)),
        ("ping", |bytes| PingResponse::parse(bytes).map(drop)),
        ("releases", |bytes| ReleasesResponse::parse(bytes).map(drop)),
        ("projects", |bytes| ProjectsResponse::parse(bytes).map(drop)),
        ("key", |bytes| KeyResponse::parse(bytes).map(drop)),
        ("key pending", |bytes| KeyPendingResponse::parse(bytes).map(drop)),
        ("key signed", |bytes| KeySignedResponse::parse(bytes).map(drop)),
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
    let signed = SignedResponse::parse(br#"{"is_complete": true, "more": {"x": [1.5, -1, null]}}"#);
    assert_eq!(signed.map(|answer| answer.is_complete), Ok(true));
    let revoked = RevokedResponse::parse(br#"{"revoked": false, "success": true, "note": ""}"#);
    assert_eq!(revoked.map(|answer| answer.revoked), Ok(false));
    // But not inside the history, which is a document.
    assert!(ChainResponse::parse(br#"{"history": {"entries": []}, "more": 1}"#).is_ok());
    assert!(ChainResponse::parse(br#"{"history": {"entries": [], "more": 1}}"#).is_err());
}

#[test]
fn paths_in_answers_are_normalised_or_refused() {
    let release = |text: &str| {
        AssetsResponse::parse(format!(r#"{{"index_file_path": "{text}"}}"#).as_bytes())
            .map(|answer| answer.index_file_path)
    };
    assert_eq!(release(&INDEX.replace("https/github.com/443", "HTTPS/GitHub.com")), Ok(path(INDEX)));
    for text in ["", "/", "../a", "a/../b", "a//b", "a\\\\b", "a/.git/b", "a\\u001bb", "a\\u0000"] {
        assert!(release(text).is_err(), "{text}");
        assert!(
            PendingResponse::parse(format!(r#"{{"file_paths": ["{text}"]}}"#).as_bytes()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn weak_and_foreign_keys_in_answers_are_refused() {
    for key in ["AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "", "AAAA", "ssh-rsa AAAA"] {
        let answer = format!(r#"{{"project_id": "{PROJECT}", "required_signers": ["{key}"]}}"#);
        assert!(ProposedResponse::parse(answer.as_bytes()).is_err(), "{key}");
    }
}

#[test]
fn an_error_is_read_where_there_is_one() {
    for answer in
        ["", "no", "{}", "[]", r#"{"error": 1}"#, r#"{"error": null}"#, r#"{"error": "a", "error": "b"}"#]
    {
        assert_eq!(ErrorBody::parse(answer.as_bytes()), None, "{answer}");
    }
    assert_eq!(
        ErrorBody::parse(br#"{"error": "", "more": 1}"#),
        Some(ErrorBody { error: String::new(), code: None })
    );
}

#[test]
fn a_code_of_another_version_is_kept_and_what_is_no_code_is_left_out() {
    let told = |code: &str| {
        let told = ErrorBody::parse(format!(r#"{{"error": "no", "code": {code}}}"#).as_bytes()).unwrap();
        assert_eq!((told.error.as_str(), told.known_code()), ("no", None), "{code}");
        told.code
    };
    assert_eq!(told(r#""of_2031""#).as_deref(), Some("of_2031"));
    let long = format!("\"{}\"", "a".repeat(65));
    for code in ["1", "null", r#""""#, r#""Busy""#, r#""a b""#, r#""\u001b[2J""#, &long] {
        assert_eq!(told(code), None, "{code}");
    }
}

#[test]
fn a_code_is_a_short_name_that_no_other_code_has() {
    let names: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(names.len(), ErrorCode::ALL.len());
    for code in ErrorCode::ALL {
        let (name, status) = (code.name(), code.status());
        assert!(
            name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{name}"
        );
        assert!((400..600).contains(&status), "{name}: {status}");
        assert!(!code.meaning().contains('|'), "it stands in a table: {name}");
    }
}

#[test]
fn what_a_server_sends_is_escaped_in_our_messages() {
    let hostile = r#"{"files": {"a/\u202e\u001b[2J": "!"}, "file_paths": ["\u001b[2J\u202e"], "index_file_path": "\u001b\u202e"}"#;
    for error in [
        FilesToSignResponse::parse(hostile.as_bytes()).expect_err("no base64"),
        PendingResponse::parse(hostile.as_bytes()).expect_err("no path"),
        AssetsResponse::parse(hostile.as_bytes()).expect_err("no path"),
    ] {
        let message = error.to_string();
        assert!(!message.contains(['\u{1b}', '\u{202e}']), "{message:?}");
    }
}
