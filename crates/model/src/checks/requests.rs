//! What the server reads of a request before it knows who asks: the `Host` header, the client that a proxy names, the path
//! behind a route, and the name of a tile. An input has one line for each.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, Version, header::HOST};
use countersign_core::log::tile::TileName;
use countersign_server::{
    host::check_host,
    proxies::{ProxyNet, TrustedProxies},
    routing::tail::parse_tail,
};

use super::promises::assert_path;

pub fn check(data: &[u8]) {
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
