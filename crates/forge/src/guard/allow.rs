//! Exceptions from the rule that only public addresses are fetched: a host or a network, with the ports it is for (D49).

use std::{fmt, net::IpAddr, str::FromStr};

use countersign_core::values::url::parse_port;
use ipnet::IpNet;
use thiserror::Error;

use crate::{
    address::unwrap_embedded,
    host::{Host, HostProblem},
    shown::shown_text,
};

/// One exception: the value of one `--allow-fetch`, or a place of a configured forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowFetch {
    to: Destination,
    pub(super) ports: Ports,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Destination {
    /// Every address that this name resolves to.
    Host(Host),
    Net(IpNet),
}

/// The ports that an exception is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ports {
    /// The default, if it names no port: 80 and 443.
    Default,
    One(u16),
    /// All ports, written as `*`.
    All,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a host or network to fetch from: {problem}. Write a host name, an IP address or a network such \
     as `10.1.0.0/16`. A port may follow, as in `git.internal:3000`, `[::1]:8080` or `10.1.0.0/16:8080`, or `:*` for \
     all ports; without one it is for 80 and 443"
)]
pub struct AllowFetchError {
    text: String,
    problem: AllowFetchProblem,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum AllowFetchProblem {
    #[error("it is not a network")]
    Net,
    #[error(transparent)]
    Host(#[from] HostProblem),
}

impl AllowFetch {
    /// An exception for this name or literal alone, not for what else resolves to it.
    pub(crate) fn host(host: Host, ports: Ports) -> Self {
        Self { to: Destination::Host(host), ports }
    }

    /// Whether the exception covers a host, by its name, or by its address if that is known already.
    pub(super) fn covers(&self, host: &Host, address: Option<IpAddr>, port: u16) -> bool {
        let is_there = match &self.to {
            Destination::Host(allowed) => allowed == host,
            Destination::Net(net) => {
                address.is_some_and(|ip| net.contains(&ip) || net.contains(&unwrap_embedded(ip)))
            }
        };
        is_there && self.ports.cover(port)
    }

    pub(super) fn is_net_at(&self, port: u16) -> bool {
        matches!(self.to, Destination::Net(_)) && self.ports.cover(port)
    }
}

impl Ports {
    fn cover(self, port: u16) -> bool {
        match self {
            Self::Default => matches!(port, 80 | 443),
            Self::One(one) => one == port,
            Self::All => true,
        }
    }
}

/// Writes the exception as an operator would.
impl fmt::Display for AllowFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            Destination::Host(host) => write!(f, "{host}")?,
            Destination::Net(net) => write!(f, "{net}")?,
        }
        match self.ports {
            Ports::Default => Ok(()),
            Ports::One(port) => write!(f, ":{port}"),
            Ports::All => f.write_str(":*"),
        }
    }
}

impl FromStr for AllowFetch {
    type Err = AllowFetchError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|problem| AllowFetchError { text: shown_text(text), problem })
    }
}

fn parse(text: &str) -> Result<AllowFetch, AllowFetchProblem> {
    let net = |address: IpAddr| Destination::Net(address.to_canonical().into());
    if let Some((address, rest)) = text.split_once('/') {
        let (length, port) = rest.split_once(':').map_or((rest, None), |(length, port)| (length, Some(port)));
        let network = format!("{address}/{length}").parse().map_err(|_| AllowFetchProblem::Net)?;
        let ports = port.map_or(Ok(Ports::Default), parse_ports)?;
        return Ok(AllowFetch { to: Destination::Net(network), ports });
    }
    // An IPv6 address without brackets has colons of its own, and so no port.
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(AllowFetch { to: net(address), ports: Ports::Default });
    }
    let (host, ports) = match text.strip_suffix(":*") {
        Some(host) => (Host::parse(host)?, Ports::All),
        None => {
            let (host, port) = Host::parse_with_port(text)?;
            (host, port.map_or(Ports::Default, Ports::One))
        }
    };
    let to = host.ip().map_or_else(|| Destination::Host(host.clone()), net);
    Ok(AllowFetch { to, ports })
}

fn parse_ports(text: &str) -> Result<Ports, HostProblem> {
    if text == "*" {
        return Ok(Ports::All);
    }
    parse_port(text).map(Ports::One).ok_or_else(|| HostProblem::Port { port: shown_text(text) })
}
