//! What the server reads of a request before it knows who asks: the `Host` header, the client that a proxy names, the
//! path behind a route, and the name of a tile. An input has one line for each.

use std::{collections::BTreeMap, fmt::Debug, net::IpAddr};

use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header::HOST};
use countersign_api::answers::{
    AssetsResponse, ChainResponse, ChangedResponse, ErrorBody, FilesToSignResponse, PendingResponse,
    PingResponse, ProposedResponse, RevokedResponse, SignedResponse, VetoedResponse,
};
use countersign_api::catalogue::{
    KeyPendingResponse, KeyResponse, KeySignedResponse, ProjectsResponse, ReleasesResponse,
};
use countersign_api::requests::{
    AssetsBody, ProposeBody, SignaturesBody, SignedStatement, WithdrawBody, parse_requests, parse_signatures,
    parse_statement_requests, parse_statements, write_requests, write_signatures, write_statement_requests,
    write_statements,
};
use countersign_core::documents::layout;
use countersign_core::documents::statement::{Objection, Revocation, Statement, StatementKind, Veto};
use countersign_core::log::tile::TileName;
use countersign_core::proof::to_sign::{SigningRequest, ToSign};
use countersign_core::proof::to_state::{StatementRequest, ToState, ToStateError, update_of};
use countersign_core::rules::auth::{AuthHeaders, nonce_expiry, request_digest, verify_request};
use countersign_core::values::key::{PublicKey, SecretKey, Signature};
use countersign_core::values::{digest::Sha512, json::ParseError, time::Timestamp, wire};
use countersign_explain::describe::describe;
use countersign_server::api::{auth::single_header, routing::parse_tail};
use countersign_server::http::request::check_host;
use countersign_server::limits::connections::{ProxyNet, TrustedProxies};
use serde::Serialize;

use crate::checks::documents::check_history_chain;
use crate::checks::promises::{assert_no_duplicates, assert_path, assert_shown, check_document};

pub fn check_requests(data: &[u8]) {
    let mut lines = data.splitn(4, |byte| *byte == b'\n');
    check_host_header(lines.next().unwrap_or_default());
    check_forwarded(lines.next().unwrap_or_default());
    let mut text = || lines.next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    check_tail(text());
    check_tile(text());
}

/// What is accepted has no user, no path and no space, so that a proxy cannot read another host there.
fn check_host_header(line: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(line) else { return };
    let mut headers = HeaderMap::new();
    headers.append(HOST, value.clone());
    let accepted = check_host(Version::HTTP_11, &headers).is_ok();
    assert_eq!(accepted, check_host(Version::HTTP_10, &headers).is_ok());
    headers.append(HOST, value);
    assert!(check_host(Version::HTTP_11, &headers).is_err(), "it is given once");
    if !accepted {
        return;
    }
    let text = std::str::from_utf8(line).expect("a host is ASCII");
    assert!(
        !text.contains(['@', '/', '\\', '?', '#', ' ', '"', '<', '>', '^', '`', '{', '|', '}']),
        "{text}"
    );
    let port = text.rsplit_once(':').filter(|(host, _)| !host.starts_with('[') || host.ends_with(']'));
    assert!(port.is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit())), "{text}");
}

/// A client can put anything in front of what the proxy appends. It changes nothing.
fn check_forwarded(line: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(line) else { return };
    let net: ProxyNet = "10.0.0.0/8".parse().expect("a network");
    let proxies = TrustedProxies(vec![net]);
    let client_of = |values: &[&[u8]]| -> Option<IpAddr> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(
                "x-forwarded-for",
                HeaderValue::from_bytes(value).expect("a valid value: checked above"),
            );
        }
        proxies.client_of(&headers)
    };
    let value = value.as_bytes();
    let client = client_of(&[value]);
    assert!(client.is_none_or(|client| !proxies.contains(client) && client == client.to_canonical()));
    let real: IpAddr = "198.51.100.7".parse().expect("an address");
    for appended in [&b"198.51.100.7"[..], b"198.51.100.7, 10.0.0.1", b"198.51.100.7:99,10.0.0.1,10.1.1.1"] {
        assert_eq!(client_of(&[&[value, b",", appended].concat()]), Some(real), "in one header");
        assert_eq!(client_of(&[value, appended]), Some(real), "in two");
    }
    if client.is_some() {
        assert_eq!(client_of(&[&[value, b", 10.0.0.1"].concat()]), client, "a proxy more changes nothing");
    }
}

/// Checks a tail that is percent-decoded once. What does not need it reads as itself.
fn check_tail(tail: &str) {
    let Ok(path) = parse_tail(tail) else { return };
    assert_path(&path);
    let encoded: String = path.as_str().bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(parse_tail(&encoded).as_ref().ok(), Some(&path));
    let escaped = path.as_str().replace('%', "%25");
    assert_eq!(parse_tail(&escaped).as_ref().ok(), Some(&path), "{tail} was decoded twice");
}

/// A second reading of the names in c2sp.org/tlog-tiles: build the only spelling of the numbers, and compare.
fn check_tile(name: &str) {
    assert_eq!(TileName::parse(name).is_some(), is_tile(name), "{name}");
}

fn is_tile(name: &str) -> bool {
    let (level, rest) = name.split_once('/').unwrap_or((name, ""));
    let (path, width) = rest.split_once(".p/").map_or((rest, None), |(path, width)| (path, Some(width)));
    let is_level = level == "entries" || (0..64).any(|known: u8| known.to_string() == level);
    let is_width = width.is_none_or(|width| (1..256).any(|known: u16| known.to_string() == width));
    let digits: String = path.chars().filter(char::is_ascii_digit).collect();
    let Ok(number) = digits.parse::<u64>() else { return false };
    let mut spelled = format!("{:03}", number % 1_000);
    let mut higher = number / 1_000;
    while higher > 0 {
        spelled = format!("x{:03}/{spelled}", higher % 1_000);
        higher /= 1_000;
    }
    is_level && is_width && spelled == path && number < 1_000_000_000_000_000_000
}

// A server's answers as its client reads them.

pub fn check_answers(data: &[u8]) {
    read(data, ProposedResponse::parse, |answer| assert_path(&answer.project_id));
    read(data, SignedResponse::parse, |_| ());
    read(data, FilesToSignResponse::parse, |answer| answer.files.keys().for_each(assert_path));
    read(data, ChainResponse::parse, |answer| check_history_chain(&answer.history));
    read(data, PendingResponse::parse, |answer| answer.file_paths.iter().for_each(assert_path));
    read(data, AssetsResponse::parse, |answer| assert_path(&answer.index_file_path));
    read(data, ReleasesResponse::parse, |answer| {
        answer.releases.iter().for_each(|release| assert_path(&release.index_path));
    });
    read(data, ProjectsResponse::parse, |answer| answer.projects.iter().for_each(assert_path));
    read(data, KeyResponse::parse, |_| ());
    read(data, KeySignedResponse::parse, |_| ());
    read(data, KeyPendingResponse::parse, |answer| {
        answer.pending.iter().for_each(|waiting| assert_path(&waiting.file_path));
    });
    read(data, RevokedResponse::parse, |_| ());
    read(data, ChangedResponse::parse, |_| ());
    read(data, VetoedResponse::parse, |_| ());
    read(data, PingResponse::parse, |_| ());
    if ErrorBody::parse(data).is_some() {
        assert_no_duplicates(data);
    }
}

/// The client reads what the server writes.
fn read<T: PartialEq + Debug + Serialize>(
    data: &[u8],
    parse: fn(&[u8]) -> Result<T, ParseError>,
    check: impl Fn(&T),
) {
    let answer = match parse(data) {
        Ok(answer) => answer,
        Err(error) => return assert_shown(&error),
    };
    assert_no_duplicates(data);
    check(&answer);
    let written = serde_json::to_vec(&answer).expect("answers can be written");
    assert_eq!(parse(&written).as_ref(), Ok(&answer));
}

// The bodies of requests (spec §4).

pub fn check_bodies(data: &[u8]) {
    check_body(data, ProposeBody::parse, serde_json::to_vec);
    if let Some(body) = check_body(data, SignaturesBody::parse, serde_json::to_vec) {
        assert_path(&body.file_path);
        body.signatures.keys().for_each(assert_path);
    }
    for kind in
        [StatementKind::Revocation, StatementKind::Veto, StatementKind::Objection, StatementKind::Rebuild]
    {
        let parse = |data: &[u8]| SignedStatement::parse(kind, data);
        if let Some(body) = check_body(data, parse, serde_json::to_vec) {
            assert_path(&body.file_path);
        }
    }
    if let Some(body) = check_body(data, WithdrawBody::parse, serde_json::to_vec) {
        assert_path(&body.file_path);
        assert!((1..=1_000).contains(&body.reason.chars().count()));
    }
    check_body(data, AssetsBody::parse, serde_json::to_vec);
}

/// The server reads what a client writes.
fn check_body<T: PartialEq + Debug>(
    data: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, ParseError>,
    write: fn(&T) -> serde_json::Result<Vec<u8>>,
) -> Option<T> {
    let body = parse(data).inspect_err(assert_shown).ok()?;
    assert_no_duplicates(data);
    let again = parse(&write(&body).expect("bodies can be written")).expect("what we write can be read");
    assert_eq!(again, body);
    Some(body)
}

// The headers that prove who calls (spec §5).
//
// An input has five parts with line ends between them: timestamp, nonce, signature, public key, and the body with the
// rest. If the signature is `sign:` and a digit, the valid signature of a fixed key replaces it.

/// The server's clock.
pub const NOW: &str = "2026-02-01T12:00:00.5Z";

pub fn check_headers(data: &[u8]) {
    check_single(data);
    let mut parts = data.splitn(5, |byte| *byte == b'\n');
    let mut line = || parts.next().and_then(|part| std::str::from_utf8(part).ok());
    let (Some(timestamp), Some(nonce), Some(signature), Some(public_key)) = (line(), line(), line(), line())
    else {
        return;
    };
    let body = parts.next().unwrap_or_default();
    let mut headers = AuthHeaders { timestamp, nonce, signature, public_key };
    let (mut made_signature, mut made_key) = (String::new(), String::new());
    if let Some(seed) = signature.strip_prefix("sign:").and_then(|rest| rest.parse::<u8>().ok()) {
        let secret = SecretKey::from_seed(&[seed; 32]);
        made_signature = secret.sign(&request_digest(timestamp, nonce, body)).to_header();
        made_key = secret.public_key().to_string();
    }
    if !made_signature.is_empty() {
        headers.signature = &made_signature;
        headers.public_key = if public_key.is_empty() { &made_key } else { public_key };
    }
    check_request(&headers, body);
}

fn check_request(headers: &AuthHeaders<'_>, body: &[u8]) {
    let now = Timestamp::parse(NOW).expect("a timestamp");
    let verified = match verify_request(headers, body, now) {
        Ok(verified) => verified,
        Err(refusal) => {
            assert_shown(&refusal);
            return;
        }
    };
    let time = Timestamp::parse(headers.timestamp).expect("a verified time is a time");
    assert_eq!((time.to_header().as_str(), time), (headers.timestamp, verified.timestamp), "D40");
    let age = now.nanos_since(time);
    assert!((-10_000_000_000..360_000_000_000).contains(&age), "{age}");
    assert!(is_uuid_4(headers.nonce), "{}", headers.nonce);
    let hex: String = verified.nonce.0.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(headers.nonce.replace('-', "").to_ascii_lowercase(), hex);
    assert_eq!(PublicKey::parse_prefixed(headers.public_key), Ok(verified.public_key));
    assert_eq!(Signature::parse(headers.signature), Ok(verified.signature));
    let text = [headers.timestamp.as_bytes(), b"##", headers.nonce.as_bytes(), b"##", body].concat();
    let digest = countersign_core::values::digest::Sha512::of(&text);
    assert!(verified.public_key.verify(&digest, &verified.signature).is_ok());
    // The server remembers a nonce for as long as the request could be repeated, and a minute more (D31).
    let kept = nonce_expiry(verified.timestamp).nanos_since(time);
    assert_eq!(kept, 420_000_000_000);
    let changed = [body, b"x"].concat();
    assert!(verify_request(headers, &changed, now).is_err(), "the signature holds for one body only");
}

/// A header that is given twice is refused. Each line of the input is one value.
fn check_single(data: &[u8]) {
    let mut headers = HeaderMap::new();
    let values =
        data.split(|byte| *byte == b'\n').take(3).filter_map(|line| HeaderValue::from_bytes(line).ok());
    for value in values {
        headers.append(wire::HEADER_NONCE, value);
    }
    let given: Vec<&HeaderValue> = headers.get_all(wire::HEADER_NONCE).iter().collect();
    match single_header(&headers, wire::HEADER_NONCE) {
        Ok(value) => assert!(given.len() == 1 && given[0].as_bytes() == value.as_bytes()),
        Err(error) => {
            assert_eq!(error.status(), StatusCode::UNAUTHORIZED);
            assert!(given.len() != 1 || given[0].to_str().is_err());
        }
    }
}

fn is_uuid_4(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => *byte == b'4',
            19 => b"89abAB".contains(byte),
            _ => byte.is_ascii_hexdigit(),
        })
}

// The files of `revoke --export` and `revoke --detached`, and what a revoker or an objector can sign of a release that
// a server shows (D34).

const KIND: StatementKind = StatementKind::Revocation;

pub fn check_to_revoke(data: &[u8]) {
    if let Ok(bodies) = parse_statements(KIND, data) {
        let written = write_statements(KIND, &bodies);
        assert_eq!(parse_statements(KIND, &written).as_ref(), Ok(&bodies));
        bodies.iter().for_each(|body| assert_path(&body.file_path));
    }
    let parse = |data: &[u8]| parse_statement_requests(KIND, data);
    let write = |requests: &Vec<_>| write_statement_requests(KIND, requests);
    let Some(requests) = check_document(data, parse, write) else { return };
    assert!(parse_requests(data).is_err(), "no file asks for signatures of two kinds");
    requests.iter().for_each(check_revoke_request);
    requests.iter().for_each(check_objection);
}

fn check_revoke_request(request: &StatementRequest) {
    let path = request.path();
    assert_path(path);
    let to_revoke = match request.check() {
        Ok(to_revoke) => to_revoke,
        Err(error) => return assert_shown(&error),
    };
    assert!(layout::signable(path).is_some(), "only an index is revoked");
    assert_eq!(to_revoke.path(), path);
    assert!(path.is_inside(to_revoke.subject.project()));
    let index = &request.subject.files[path];
    let Statement::Revocation(document) = &to_revoke.document else { panic!("it is no revocation") };
    assert_eq!(document.subject_digest, Some(Sha512::of(index.as_bytes())));
    assert!(request.collected.entries.is_empty() || !to_revoke.signed.is_empty(), "someone has begun");
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_revoke.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert_eq!(body.text, request.text, "what is shown is what is signed");
    assert!(key.public_key().verify(&Sha512::of(body.text.as_bytes()), &body.signature).is_ok());
    let refused = |change: &dyn Fn(&mut StatementRequest)| {
        let mut changed = request.clone();
        change(&mut changed);
        assert!(changed.check().is_err());
    };
    refused(&|request| request.subject.files.values_mut().for_each(|index| index.push(' ')));
    refused(&|request| request.subject.history = Default::default());
    refused(&|request| {
        request.subject.path = request.path().parent().expect("an index lies in a directory");
    });
    refused(&|request| request.text = request.subject.files[request.path()].clone());
}

/// Checks that an objection is about its release, whatever its author wrote as the reason.
fn check_objection(request: &StatementRequest) {
    let (path, subject) = (request.path(), &request.subject);
    let index = &subject.files[path];
    let objection = |text: Option<String>| {
        let document = Objection {
            text,
            subject_digest: Sha512::of(index.as_bytes()),
            timestamp: Timestamp::from_unix_seconds(1_770_000_000).expect("in the range of timestamps"),
        };
        let text = String::from_utf8(document.write()).expect("a written objection is UTF-8");
        StatementRequest::of_release(
            StatementKind::Objection,
            path.clone(),
            index.clone(),
            subject.history.clone(),
            text,
        )
    };
    let to_object = match (objection(Some(request.text.clone())).check(), objection(None).check()) {
        (Ok(to_object), taken_back) => {
            assert!(taken_back.is_ok());
            to_object
        }
        (Err(error), _) => return assert_shown(&error),
    };
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_object.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    let document = Objection::parse(body.text.as_bytes()).expect("what is signed is an objection");
    assert_eq!(document.text.as_ref(), Some(&request.text), "in the objector's own words");
    assert_eq!(document.subject_digest, Sha512::of(index.as_bytes()));
    assert!(Revocation::parse(body.text.as_bytes()).is_err());
}

// The files of `sign --export` and `sign --detached`, and what a signer can sign of the former (D34), or a master veto
// (D138).

pub fn check_to_sign(data: &[u8]) {
    if let Ok(bodies) = parse_signatures(data) {
        let written = write_signatures(&bodies);
        assert_eq!(parse_signatures(&written).as_ref(), Ok(&bodies));
    }
    let requests = check_document(data, parse_requests, |requests: &Vec<_>| write_requests(requests));
    requests.into_iter().flatten().for_each(|request| check_sign_request(&request));
}

fn check_sign_request(request: &SigningRequest) {
    assert_path(&request.path);
    let to_sign = match request.check() {
        Ok(to_sign) => to_sign,
        Err(error) => return assert_shown(&error),
    };
    assert!(layout::signable(&request.path).is_some(), "only an index or a proposal is signed");
    let project = to_sign.project();
    assert!(request.path.is_inside(project), "{} is outside of {project}", request.path);
    let files = request.to_files(project, &BTreeMap::new()).expect("what can be signed is sound");
    let shown = describe(&files, &request.path).expect("what can be signed is described");
    let shown = shown.expect("what can be signed is there");
    assert!(shown.missing().is_subset(&to_sign.accepted_signers()));
    assert!(shown.missing().is_disjoint(&shown.signed()));
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_sign.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert!(body.signatures.keys().eq(request.files.keys()), "every file is signed, and no other");
    for (path, signature) in &body.signatures {
        let digest = Sha512::of(request.files[path].as_bytes());
        assert!(key.public_key().verify(&digest, signature).is_ok());
    }
    check_veto(request, &to_sign);
}

/// Checks that only a veto of this proposal is signed as one.
fn check_veto(request: &SigningRequest, to_sign: &ToSign) {
    let check_to_sign = |text: String| -> Result<ToState, ToStateError> {
        let (kind, subject, collected) = (StatementKind::Veto, request.clone(), Default::default());
        let request = StatementRequest { kind, subject, text, collected, waits_until: None };
        request.check_text(to_sign.clone())
    };
    for shown in request.files.values() {
        assert!(check_to_sign(shown.clone()).is_err(), "what is proposed is no veto");
    }
    let chain = match update_of(to_sign) {
        Ok(chain) => chain,
        Err(error) => return assert_shown(&error),
    };
    let veto = Veto {
        veto: "no".to_owned(),
        project_id: to_sign.project().clone(),
        signers_file_digest: *to_sign.digest(),
        previous: chain.last().digest,
        timestamp: Timestamp::from_unix_seconds(1_770_000_000).expect("in the range of timestamps"),
    };
    let text = |veto: &Veto| String::from_utf8(veto.write()).expect("a written veto is UTF-8");
    let to_veto = check_to_sign(text(&veto)).expect("it is a veto of this proposal");
    let key = SecretKey::from_seed(&[7; 32]);
    let body =
        to_veto.sign(key.public_key(), |digest| Ok::<_, ()>(key.sign(digest))).expect("this key signs");
    assert_eq!((body.file_path, body.text), (request.path.clone(), text(&veto)));
    let others = [
        Veto { signers_file_digest: Sha512::of(b""), ..veto.clone() },
        Veto { previous: Sha512::of(b""), ..veto.clone() },
        Veto { project_id: request.path.clone(), ..veto },
    ];
    assert!(others.iter().all(|other| check_to_sign(text(other)).is_err()));
}
