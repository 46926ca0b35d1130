//! The `Host` header (RFC 9112, section 3.2): a request of HTTP/1.1 has exactly one, and each one is a host.

use axum::http::{HeaderMap, Version, header::HOST};

use crate::error::ApiError;

/// A proxy in front of us might take the first of two, or none, where we take the other one.
pub(crate) fn check_host(version: Version, headers: &HeaderMap) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_host_and_port(host.as_bytes()) => Ok(()),
        (Some(_), None) => Err(ApiError::bad_request("the Host header is not the name of a host")),
        (Some(_), Some(_)) => Err(ApiError::bad_request("the Host header is given more than once")),
        (None, _) if version == Version::HTTP_11 => {
            Err(ApiError::bad_request("a request of HTTP/1.1 needs a Host header"))
        }
        (None, _) => Ok(()),
    }
}

/// `host [":" port]` of RFC 3986. A host may be empty there.
fn is_host_and_port(text: &[u8]) -> bool {
    let end = match text.first() {
        Some(b'[') => text.iter().position(|byte| *byte == b']').map(|end| end + 1),
        Some(_) | None => Some(text.iter().position(|byte| *byte == b':').unwrap_or(text.len())),
    };
    let Some((host, port)) = end.and_then(|end| text.split_at_checked(end)) else { return false };
    let is_port = port.is_empty() || (port[0] == b':' && port[1..].iter().all(u8::is_ascii_digit));
    is_port && if host.first() == Some(&b'[') { is_literal(host) } else { is_name(host) }
}

fn is_literal(host: &[u8]) -> bool {
    let inside = &host[1..host.len() - 1];
    !inside.is_empty() && inside.iter().all(|byte| byte.is_ascii_alphanumeric() || b":.-_~".contains(byte))
}

fn is_name(mut host: &[u8]) -> bool {
    while let [byte, rest @ ..] = host {
        host = match (byte, rest) {
            (b'%', [a, b, rest @ ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => rest,
            (b'%', _) => return false,
            _ if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte) => rest,
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, StatusCode};

    use super::*;

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
            "localhost",
            "sign.example.org",
            "sign.example.org:8443",
            "sign.example.org:",
            "127.0.0.1:3000",
            "[::1]",
            "[::1]:3000",
            "[v7.x:y]",
            "b%C3%BCcher.example",
            "under_score",
            "",
        ] {
            check(Version::HTTP_11, &[host]).unwrap();
        }
        for host in [
            "a b",
            "a/b",
            "a@b",
            "a:b",
            "a:1:2",
            "::1",
            "[::1",
            "[]",
            "[::1]x",
            "[::1]:x",
            "a[b]",
            "a%2",
            "a%zz",
            "\"a\"",
            "<a>",
            "a?",
            "a#b",
            "a\\b",
            "a,b:1,c:2",
        ] {
            let refused = check(Version::HTTP_11, &[host]).unwrap_err();
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{host}");
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
}
