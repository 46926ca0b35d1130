//! Which address a request comes from: the peer's own, or the one that a trusted proxy names.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use thiserror::Error;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A proxy, or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyNet(IpNet);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not an address or network of proxies. Write an IP address, or a network such as `10.1.0.0/16`"
)]
pub struct ProxyNetError(String);

impl FromStr for ProxyNet {
    type Err = ProxyNetError;

    fn from_str(text: &str) -> Result<Self, ProxyNetError> {
        let net = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        net.map(Self).map_err(|_| ProxyNetError(text.to_owned()))
    }
}

/// The proxies that the server believes about their clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(pub Vec<ProxyNet>);

impl TrustedProxies {
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|ProxyNet(net)| net.contains(&address))
    }

    /// The client for which the trusted proxy speaks. Each proxy appends the address that asked it. So the last address
    /// that is not a trusted proxy is the last one that a client cannot forge.
    pub fn client_of(&self, headers: &HeaderMap) -> Option<IpAddr> {
        for value in headers.get_all(FORWARDED_FOR).iter().rev() {
            // Piece by piece, since a client can put anything in front.
            for named in value.as_bytes().rsplit(|byte| *byte == b',') {
                let address = parse_address(str::from_utf8(named).ok()?.trim())?.to_canonical();
                if !self.contains(address) {
                    return Some(address);
                }
            }
        }
        None
    }
}

/// Some proxies append the port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(bracketed).or_else(with_port)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn proxies() -> TrustedProxies {
        TrustedProxies(vec![
            "10.0.0.0/8".parse().unwrap(),
            "::1".parse().unwrap(),
            "192.0.2.7".parse().unwrap(),
        ])
    }

    fn client(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        proxies().client_of(&headers).map(|address| address.to_string())
    }

    #[test]
    fn addresses_and_networks_are_proxies() {
        for trusted in ["10.1.2.3", "::1", "192.0.2.7", "::ffff:10.0.0.1"] {
            assert!(proxies().contains(trusted.parse().unwrap()), "{trusted}");
        }
        for other in ["11.0.0.1", "::2", "192.0.2.8", "127.0.0.1"] {
            assert!(!proxies().contains(other.parse().unwrap()), "{other}");
        }
        for wrong in ["", "proxy.example", "10.0.0.0/33", "10.0.0", "10.0.0.0/8,::1"] {
            let error = wrong.parse::<ProxyNet>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{wrong}` ")), "{error}");
        }
    }

    #[test]
    fn the_last_address_that_is_no_proxy_of_ours_is_the_client() {
        for (values, expected) in [
            (&["198.51.100.1"][..], "198.51.100.1"),
            (&["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
            (&["203.0.113.9,198.51.100.1, 10.0.0.2,10.0.0.3"], "198.51.100.1"),
            (&["203.0.113.9", "198.51.100.1, 10.0.0.2"], "198.51.100.1"),
            (&["198.51.100.1", "10.0.0.2", "::1"], "198.51.100.1"),
            (&["not an address, 198.51.100.1"], "198.51.100.1"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["[2001:db8::1]:4711"], "2001:db8::1"),
            (&["198.51.100.1:4711"], "198.51.100.1"),
            (&["::ffff:198.51.100.1"], "198.51.100.1"),
        ] {
            assert_eq!(client(values).as_deref(), Some(expected), "{values:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_in_front_of_it_hide_nobody() {
        let value = HeaderValue::from_bytes(b"\xff, 198.51.100.1").unwrap();
        let headers = HeaderMap::from_iter([(FORWARDED_FOR, value)]);
        assert_eq!(proxies().client_of(&headers), Some("198.51.100.1".parse().unwrap()));
    }

    #[test]
    fn what_cannot_be_read_before_such_an_address_names_nobody() {
        for values in [
            &[][..],
            &[""],
            &["10.0.0.2"],
            &["unknown"],
            &["198.51.100.1, unknown"],
            &["198.51.100.1, "],
            &["198.51.100.1", "_hidden, 10.0.0.2"],
            &["198.51.100.1 203.0.113.9"],
            &["198.51.100.1/32"],
        ] {
            assert_eq!(client(values), None, "{values:?}");
        }
    }
}
