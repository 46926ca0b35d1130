//! What an operator configures: hosts, file servers and exceptions (D27, D28).

use std::str::FromStr;

use countersign_core::values::url::Scheme;
use countersign_forge::{
    file_server::{FileServerRule, FileServers},
    guard::{AllowFetch, Guard},
    host::Host,
    url::SourceUrl,
};

use super::promises::assert_shown;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Host::parse(text) {
        Ok(host) => check_host(&host),
        Err(problem) => assert_shown(&problem),
    }
    match Host::parse_with_port(text) {
        Ok((host, port)) => {
            check_host(&host);
            assert_ne!(port, Some(0));
            let written = port.map_or(host.to_string(), |port| format!("{host}:{port}"));
            assert_eq!(written, text.to_ascii_lowercase());
        }
        Err(problem) => assert_shown(&problem),
    }
    match AllowFetch::from_str(text) {
        Ok(rule) => {
            assert_shown(&rule);
            assert_eq!(rule.to_string().parse().as_ref(), Ok(&rule), "{text}");
        }
        Err(error) => assert_shown(&error),
    }
    match FileServerRule::from_str(text) {
        Ok(rule) => check_rule(rule),
        Err(error) => assert_shown(&error),
    }
}

/// The one spelling of a host, which is also the name of a directory.
fn check_host(host: &Host) {
    let text = host.as_str();
    assert_eq!(Host::parse(text).as_ref(), Ok(host));
    assert!(text.is_ascii() && text == text.to_ascii_lowercase() && !text.ends_with('.'), "{text:?}");
    assert!(!text.contains(['/', '\\', '@', '%', ' ']) && text != "..", "{text:?}");
    let url = url::Url::parse(&format!("https://{text}/")).expect("a host makes a URL");
    assert_eq!(url.host_str(), Some(text));
    let is_ip = matches!(url.host(), Some(url::Host::Ipv4(_) | url::Host::Ipv6(_)));
    assert_eq!(host.ip().is_some(), is_ip, "{text:?}");
    let source = SourceUrl::parse(&format!("https://{text}/file")).expect("a host makes a source");
    assert_eq!(source.host(), host);
    check_guard(host, &url);
}

/// Checks that without exceptions, a URL with the literal of a non-public address is refused.
fn check_guard(host: &Host, url: &url::Url) {
    if let Some(ip) = host.ip() {
        let is_public = countersign_forge::address::non_public_reason(ip).is_none();
        assert_eq!(Guard::default().admit(url).is_ok(), is_public, "{url}");
        let is_private_v4 = match ip {
            std::net::IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
            std::net::IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_multicast(),
        };
        assert!(!(is_public && is_private_v4), "{ip}");
    }
}

fn check_rule(rule: FileServerRule) {
    let servers = FileServers { rules: vec![rule.clone()], loopback: false };
    let github = Host::parse("github.com").expect("a host");
    assert!(!servers.allow(Scheme::Https, &github, 443), "a known forge is never a file server");
    if let FileServerRule::Host { host, port } = rule
        && host != github
    {
        let is_known =
            ["gitlab.com", "codeberg.org", "gitea.com", "raw.githubusercontent.com"].contains(&host.as_str());
        assert_eq!(servers.allow(Scheme::Https, &host, port.unwrap_or(443)), !is_known);
        assert!(!servers.allow(Scheme::Https, &host, if port == Some(1) { 2 } else { 1 }));
    }
}
