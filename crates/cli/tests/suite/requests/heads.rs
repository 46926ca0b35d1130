//! D47: heads are bounded, what is no request gets the same errors as a request, and a request has one host.

use std::{io::Read as _, io::Write as _, net::SocketAddr, net::TcpStream, time::Duration};

use countersign_api::error_code::ErrorCode;

use crate::support::{Connection, TestServer};

const HEAD_LIMIT: usize = 32 * 1024;
const MAX_FIELDS: usize = 100;

/// Everything that the server says to these bytes until it ends the connection.
fn converse(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("the server answers, and ends the connection");
    said
}

#[track_caller]
fn assert_refused(said: &str, status: u16, words: &str) {
    let (head, body) = said.split_once("\r\n\r\n").expect("an answer");
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
    let length = format!("content-length: {}", body.len());
    let fields = ["content-type: application/json", "connection: close", "cache-control: no-store", &length];
    for field in fields {
        assert!(head.split("\r\n").any(|line| line == field), "no {field}: {said}");
    }
    assert!(head.contains("\r\nx-request-id: ") && head.contains("\r\ndate: "), "{said}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let object = body.as_object().unwrap();
    assert_eq!(object.len(), 2, "{said}");
    let code =
        object["code"].as_str().and_then(ErrorCode::parse).unwrap_or_else(|| panic!("no code: {said}"));
    assert_eq!(code.status(), status, "{said}");
    assert!(object["error"].as_str().unwrap().contains(words), "{said}");
}

/// A head of exactly that many bytes.
fn head_of(length: usize) -> String {
    let head = |filling: usize| {
        let filling = "a".repeat(filling);
        format!("GET /v1/ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-long: {filling}\r\n\r\n")
    };
    head(length - head(0).len())
}

#[test]
fn a_head_of_32_kib_and_100_fields_is_read_and_a_longer_one_is_431() {
    let server = TestServer::start();
    let said = converse(server.address(), head_of(HEAD_LIMIT).as_bytes());
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    let said = converse(server.address(), head_of(HEAD_LIMIT + 1).as_bytes());
    assert_refused(&said, 431, "32768 bytes");
    // Also where it has no end yet, and where the client goes on sending: it must not lose the answer to a reset.
    let said = converse(server.address(), &head_of(400_000).as_bytes()[..390_000]);
    assert_refused(&said, 431, "32768 bytes");
    let target = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(70_000));
    assert_refused(&converse(server.address(), target.as_bytes()), 431, "32768 bytes");
    let with_fields = |count: usize| {
        let others: String = (2..count).map(|n| format!("x-{n}: {n}\r\n")).collect();
        let head = format!("GET /v1/ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{others}\r\n");
        converse(server.address(), head.as_bytes())
    };
    let said = with_fields(MAX_FIELDS);
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    assert_refused(&with_fields(MAX_FIELDS + 1), 431, "100 header fields");
}

#[test]
fn what_is_no_request_is_400_in_json_and_what_came_before_it_is_answered() {
    let server = TestServer::start();
    for bytes in [
        "nonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/3.7\r\n\r\n",
        "GET /\u{7f} HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nhost localhost\r\n\r\n",
        "POST /v1/assets HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
        "POST /v1/assets HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST /v1/assets HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}",
    ] {
        assert_refused(&converse(server.address(), bytes.as_bytes()), 400, "HTTP/1.1");
    }
    let mut connection = Connection::open(server.address());
    for _ in 0..3 {
        // An unwanted body that looks like what hyper says of nonsense.
        let body = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let length = body.len();
        let ping = "GET /v1/ping HTTP/1.1\r\nhost: localhost\r\n";
        connection.write(&format!("{ping}content-length: {length}\r\n\r\n{body}{ping}\r\n"));
        for _ in 0..2 {
            connection.read_reply().ok();
        }
    }
    connection.write("GET /v1/ping HTTP/1.1\r\nhost: localhost\r\n\r\nnonsense\r\n\r\n");
    connection.read_reply().ok();
    connection.read_reply().refused(400, "HTTP/1.1");
}

/// Which hosts are names is tested in crates/server.
#[test]
fn a_request_of_http_1_1_has_exactly_one_host() {
    let server = TestServer::start();
    for target in ["/v1/ping", "/", "http://localhost/v1/ping"] {
        for (version, hosts, expected) in [
            ("1.1", "host: localhost\r\n", " 200 "),
            ("1.0", "", " 200 "),
            ("1.1", "", "needs a Host header"),
            ("1.1", "host: localhost\r\nhost: localhost\r\n", "more than once"),
            ("1.1", "host: a b\r\n", "not the name of a host"),
        ] {
            let request = format!("GET {target} HTTP/{version}\r\n{hosts}connection: close\r\n\r\n");
            let said = converse(server.address(), request.as_bytes());
            assert!(said.contains(expected), "{version} {hosts:?}: {said}");
            assert!(expected == " 200 " || said.starts_with("HTTP/1.1 400 "), "{said}");
        }
    }
}
