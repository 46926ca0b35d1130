//! Finds the address that a request comes from: the peer's own, or the one that a trusted proxy names.

use std::{net::IpAddr, net::SocketAddr, str::FromStr};

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
