//! Finds where the parts of an http(s) URL begin and end (D6, "In URLs"). Core, server and client all read URLs through
//! this, so that no two of them see another host in the same text.

use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
}

/// An http(s) URL in its parts, as they are written. Only the scheme is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UrlParts<'a> {
    pub scheme: Scheme,
    /// Host and port, for `Authority`, and user information if there is any.
    pub authority: &'a str,
    /// Begins with a slash, or is empty.
    pub path: &'a str,
    /// Query and fragment: begins with `?` or `#`, or is empty.
    pub after_path: &'a str,
}

/// `HOST` or `HOST:PORT`, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority<'a> {
    pub host: &'a str,
    /// The rest after the host: it should be empty, or a colon and a port.
    after_host: &'a str,
}

/// Whether a host, by its text alone, is the machine that asks: a loopback address or `localhost`.
pub fn is_this_machine(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    address.map_or(host == "localhost", |address| address.is_loopback())
}

impl Scheme {
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|scheme| text.eq_ignore_ascii_case(scheme.as_str()))
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl<'a> UrlParts<'a> {
    pub fn split(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (rest, after_path) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Some(Self { scheme: Scheme::parse(scheme)?, authority, path, after_path })
    }
}

impl<'a> Authority<'a> {
    pub fn split(text: &'a str) -> Self {
        let host_end = match text.find(']') {
            // The colons of an IPv6 address stand in brackets.
            Some(bracket) if text.starts_with('[') => bracket + 1,
            _ => text.find(':').unwrap_or(text.len()),
        };
        let (host, after_host) = text.split_at(host_end);
        Self { host, after_host }
    }

    /// The port, if one is written. What stands there and is no port is the error.
    pub fn port(&self) -> Result<Option<u16>, &'a str> {
        if self.after_host.is_empty() {
            return Ok(None);
        }
        let port = self.after_host.strip_prefix(':').ok_or(self.after_host)?;
        parse_port(port).map(Some).ok_or(port)
    }
}

/// A port from 1 to 65535, in plain digits.
pub fn parse_port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain)
}

/// Whether the text has the form of a host: labels of letters, digits, `-` and `_`, or an address in brackets. Servers
/// accept less (`countersign_forge::host`), since they go there.
pub fn is_host(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.')),
        None => text.split('.').all(|label| !label.is_empty() && label.chars().all(is_name)),
    }
}
