//! Where outgoing requests may go (D28): public addresses, and what the operator allowed besides.

use std::{net::IpAddr, str::FromStr};

use ipnet::IpNet;
use thiserror::Error;
use url::Url;

use crate::{
    address::{non_public_reason, unwrap_embedded},
    file_server::FileServers,
    host::{Host, HostProblem},
    shown::shown_text,
    url::Scheme,
};

#[cfg(test)]
mod tests;

/// One exception from the rule that only public addresses are fetched: the value of one `--allow-fetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowFetch {
    /// Every address that this name resolves to.
    Host(Host),
    Net(IpNet),
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a host or network to fetch from: {problem}. Write a host name, an IP address or a network such \
     as `10.1.0.0/16`, without a port"
)]
pub struct AllowFetchError {
    text: String,
    problem: AllowFetchProblem,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum AllowFetchProblem {
    #[error("it is not a network")]
    Net,
    #[error("it has a port")]
    Port,
    #[error(transparent)]
    Host(#[from] HostProblem),
}

#[derive(Debug, Clone, Default)]
pub struct Guard {
    pub allow: Vec<AllowFetch>,
    /// May be read over plain http; their addresses must be public all the same.
    pub file_servers: FileServers,
    /// Loopback addresses are an exception (`--dev`).
    pub loopback: bool,
    /// Hosts of configured forges: an exception by this name or literal alone, not by what else resolves to it.
    pub forges: Vec<Host>,
}

/// Which addresses a request may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    PublicAndExceptions,
    /// Plain http to a host that has no permission for it by name: only an excepted address can give it.
    ExceptionsOnly,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GuardRefusal {
    #[error("`{scheme}` is not fetched: only https, and plain http where the operator allows it")]
    Scheme { scheme: String },
    #[error("it has user information before an `@`")]
    UserInfo,
    #[error(transparent)]
    Host(#[from] HostProblem),
    /// The address stays out of the text, which must not tell strangers how internal names resolve.
    #[error("{host} is or resolves to {kind}: the operator can allow it with `--allow-fetch {host}`")]
    NotPublic { host: Host, address: IpAddr, kind: &'static str },
    #[error(
        "plain http is not allowed for {host}: use https, or have the operator allow it with `--file-server` or \
         `--allow-fetch`"
    )]
    PlainHttp { host: Host },
}

impl FromStr for AllowFetch {
    type Err = AllowFetchError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_exception(text).map_err(|problem| AllowFetchError { text: shown_text(text), problem })
    }
}

impl Guard {
    /// Checks all that a URL tells without resolving its host, and says which addresses it may connect to. An IP
    /// address in the URL is checked here, since connecting to it asks no resolver.
    pub fn admit(&self, url: &Url) -> Result<Reach, GuardRefusal> {
        let scheme = Scheme::parse(url.scheme())
            .ok_or_else(|| GuardRefusal::Scheme { scheme: shown_text(url.scheme()) })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(GuardRefusal::UserInfo);
        }
        let host = Host::parse(url.host_str().unwrap_or_default())?;
        let port = url.port().unwrap_or(scheme.default_port());
        let reach = match scheme {
            Scheme::Https => Reach::PublicAndExceptions,
            Scheme::Http if self.excepts_host(&host) || self.file_servers.allow(scheme, &host, port) => {
                Reach::PublicAndExceptions
            }
            Scheme::Http => Reach::ExceptionsOnly,
        };
        match host.ip() {
            Some(address) => self.check_address(reach, &host, address)?,
            // Without this, a name that does not resolve would be an upstream error instead of a refusal.
            None if reach == Reach::ExceptionsOnly && !self.excepts_any_address() => {
                return Err(GuardRefusal::PlainHttp { host });
            }
            None => {}
        }
        Ok(reach)
    }

    /// Whether `host` may be connected to at this address.
    pub fn check_address(&self, reach: Reach, host: &Host, address: IpAddr) -> Result<(), GuardRefusal> {
        if self.excepts_host(host) || self.excepts_address(address) {
            return Ok(());
        }
        if let Some(kind) = non_public_reason(address) {
            return Err(GuardRefusal::NotPublic { host: host.clone(), address, kind });
        }
        match reach {
            Reach::PublicAndExceptions => Ok(()),
            Reach::ExceptionsOnly => Err(GuardRefusal::PlainHttp { host: host.clone() }),
        }
    }

    fn excepts_host(&self, host: &Host) -> bool {
        self.forges.contains(host)
            || self.allow.iter().any(|allow| matches!(allow, AllowFetch::Host(allowed) if allowed == host))
    }

    fn excepts_address(&self, address: IpAddr) -> bool {
        let target = unwrap_embedded(address);
        let in_net = |net: &IpNet| net.contains(&address) || net.contains(&target);
        (self.loopback && target.is_loopback())
            || self.allow.iter().any(|allow| matches!(allow, AllowFetch::Net(net) if in_net(net)))
    }

    fn excepts_any_address(&self) -> bool {
        self.loopback || self.allow.iter().any(|allow| matches!(allow, AllowFetch::Net(_)))
    }
}

fn parse_exception(text: &str) -> Result<AllowFetch, AllowFetchProblem> {
    if text.contains('/') {
        return text.parse().map(AllowFetch::Net).map_err(|_| AllowFetchProblem::Net);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(AllowFetch::Net(address.to_canonical().into()));
    }
    match Host::parse_with_port(text)? {
        (_, Some(_)) => Err(AllowFetchProblem::Port),
        (host, None) => Ok(match host.ip() {
            Some(address) => AllowFetch::Net(address.to_canonical().into()),
            None => AllowFetch::Host(host),
        }),
    }
}
