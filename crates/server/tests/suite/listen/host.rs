//! The `Host` header.

use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header::HOST};
use countersign_server::http::{error::ApiError, request::check_host};

fn check(version: Version, hosts: &[&str]) -> Result<(), ApiError> {
    let mut headers = HeaderMap::new();
    for host in hosts {
        headers.append(HOST, HeaderValue::from_str(host).unwrap());
    }
    check_host(version, &headers)
}

#[test]
fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
    for host in [
        "localhost", "sign.example.org", "sign.example.org:8443", "sign.example.org:", "127.0.0.1:3000",
        "[::1]", "[::1]:3000", "[v7.x:y]", "b%C3%BCcher.example", "under_score", "",
    ] {
        check(Version::HTTP_11, &[host]).unwrap();
    }
    for host in [
        "a b", "a/b", "a@b", "a:b", "a:1:2", "::1", "[::1", "[]", "[::1]x", "[::1]:x", "a[b]", "a%2", "a%zz",
        "\"a\"", "<a>", "a?", "a#b", "a\\b", "a,b:1,c:2",
    ] {
        let refused = check(Version::HTTP_11, &[host]).unwrap_err();
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{host}");
    }
}

#[test]
fn http_1_1_needs_exactly_one_and_http_1_0_at_most_one() {
    for (version, hosts, is_fine) in [
        (Version::HTTP_11, &["a"][..], true),
        (Version::HTTP_11, &[], false),
        (Version::HTTP_11, &["a", "a"], false),
        (Version::HTTP_10, &["a"], true),
        (Version::HTTP_10, &[], true),
        (Version::HTTP_10, &["a", "b"], false),
        (Version::HTTP_10, &["a b"], false),
    ] {
        assert_eq!(check(version, hosts).is_ok(), is_fine, "{version:?} {hosts:?}");
    }
}
