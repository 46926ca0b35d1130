//! Hosts in the one spelling that we accept, so that a host can be compared, stored and checked as text (D6).

use std::{fmt, net::IpAddr};

use countersign_core::values::url::{Authority, is_host, is_this_machine};
use thiserror::Error;

use crate::shown::shown_text;

const MAX_HOST_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// A lower-case ASCII name without a trailing dot, or an IP address in its canonical form (IPv6 in brackets).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host(String);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostProblem {
    #[error("it has no host")]
    Empty,
    #[error("the host ends in a dot: leave the dot out")]
    TrailingDot,
    #[error("the host is not in its canonical form: write `{canonical}`")]
    NotCanonical { canonical: String },
    #[error(
        "`{host}` is not a host name (letters, digits, `-`, `_` and dots; Unicode names in punycode), an IPv4 \
         address (`192.0.2.1`) or an IPv6 address in brackets without a zone (`[2001:db8::1]`)"
    )]
    Malformed { host: String },
    #[error(
        "the port `{port}` is not a plain number from 1 to 65535: correct it, or leave it out with its colon"
    )]
    Port { port: String },
}

impl Host {
    pub fn parse(text: &str) -> Result<Self, HostProblem> {
        if text.is_empty() {
            return Err(HostProblem::Empty);
        }
        let malformed = || HostProblem::Malformed { host: shown_text(text) };
        // Also reads the spellings of IP addresses that resolvers and browsers accept (`0x7f.1`, `2130706433`).
        let canonical = url::Host::parse(text).map_err(|_| malformed())?.to_string();
        if text.ends_with('.') {
            return Err(HostProblem::TrailingDot);
        }
        let host = text.to_ascii_lowercase();
        if host != canonical {
            return Err(HostProblem::NotCanonical { canonical: shown_text(&canonical) });
        }
        if !host.starts_with('[') && !is_dns_name(&host) {
            return Err(malformed());
        }
        Ok(Self(host))
    }

    /// Parses `HOST` or `HOST:PORT`, as in a URL.
    pub fn parse_with_port(text: &str) -> Result<(Self, Option<u16>), HostProblem> {
        let authority = Authority::split(text);
        let host = Self::parse(authority.host)?;
        let port = authority.port().map_err(|port| HostProblem::Port { port: shown_text(port) })?;
        Ok((host, port))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address, where the host is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.0.trim_matches(['[', ']']).parse().ok()
    }

    /// A loopback address or `localhost`, judged by the text alone.
    pub fn is_loopback(&self) -> bool {
        is_this_machine(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The `url` crate lets more characters pass than any DNS name has, and hosts become directory names.
fn is_dns_name(host: &str) -> bool {
    let is_label = |label: &str| label.len() <= MAX_LABEL_BYTES && !label.starts_with('-');
    is_host(host) && host.len() <= MAX_HOST_BYTES && host.split('.').all(is_label)
}
