//! Says where outgoing requests may go (D28): public addresses, and what the operator allowed besides.

use std::{collections::BTreeSet, error::Error as StdError, net::IpAddr};

use countersign_core::values::{path::RepoPath, url::Scheme};
use thiserror::Error;
use url::Url;

use crate::{
    address::{non_public_reason, unwrap_embedded},
    file_server::FileServers,
    host::{Host, HostProblem},
    shown::shown_text,
    url::has_user_info,
};

pub use allow::{AllowFetch, AllowFetchError, Ports};

mod allow;

/// Stands for every port that no exception names.
pub const OTHER_PORT: u16 = 0;

#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// What `--allow-fetch` names, and the places of configured forges.
    pub allow: Vec<AllowFetch>,
    /// File servers, which may be read over plain http; their addresses must be public all the same.
    pub file_servers: FileServers,
    /// Whether loopback addresses are an exception (`--dev`).
    pub loopback: bool,
}

/// The addresses that a request may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    #[error(
        "{host} is or resolves to {kind}: the operator can allow it with `--allow-fetch {host}{}`",
        shown_port(*port)
    )]
    NotPublic { host: Host, port: u16, kind: &'static str },
    #[error(
        "plain http is not allowed for {host}: use https, or have the operator allow it with `--file-server` or \
         `--allow-fetch`"
    )]
    PlainHttp { host: Host },
}

impl GuardRefusal {
    /// Puts the port of the URL into a refusal, which names no more than a class of ports.
    pub(crate) fn at_port(mut self, url: &Url) -> Self {
        if let Self::NotPublic { port, .. } = &mut self {
            *port = url.port_or_known_default().unwrap_or_default();
        }
        self
    }
}

impl Guard {
    /// Guards a URL that a project names to its users (D227): only public addresses, and only https. A user who wrote
    /// the project's host as an address, or as `localhost`, goes there anyway, as safely as to the project.
    pub fn for_users_of(project: &RepoPath, url: &Url) -> Self {
        let host = project.host().and_then(|host| Host::parse(host).ok());
        let written = host.filter(|host| host.ip().is_some() || host.is_loopback());
        let schemes = [url.scheme(), project.segments().next().unwrap_or_default()];
        let is_downgrade = schemes == [Scheme::Http.as_str(), Scheme::Https.as_str()];
        let own = written.filter(|host| !is_downgrade || host.is_loopback());
        Self {
            allow: own.map(|host| AllowFetch::host(host, Ports::All)).into_iter().collect(),
            ..Self::default()
        }
    }

    /// Checks all that a URL tells without resolving its host, and says which addresses it may connect to. An IP
    /// address in the URL is checked here, since connecting to it asks no resolver.
    pub fn admit(&self, url: &Url) -> Result<Reach, GuardRefusal> {
        let scheme = Scheme::parse(url.scheme())
            .ok_or_else(|| GuardRefusal::Scheme { scheme: shown_text(url.scheme()) })?;
        if has_user_info(url) {
            return Err(GuardRefusal::UserInfo);
        }
        let host = Host::parse(url.host_str().unwrap_or_default())?;
        let port = url.port().unwrap_or(scheme.default_port());
        let is_excepted = self.allow.iter().any(|allow| allow.covers(&host, None, port));
        let may_be_plain = is_excepted || self.file_servers.allow(scheme, &host, port);
        let reach = match scheme {
            Scheme::Http if !may_be_plain => Reach::ExceptionsOnly,
            Scheme::Http | Scheme::Https => Reach::PublicAndExceptions,
        };
        let may_be_excepted = self.loopback || self.allow.iter().any(|allow| allow.is_net_at(port));
        match host.ip() {
            Some(address) => self.check_address(reach, &host, address, port)?,
            // Without this, a name that does not resolve would be an upstream error instead of a refusal.
            None if reach == Reach::ExceptionsOnly && !may_be_excepted => {
                return Err(GuardRefusal::PlainHttp { host });
            }
            None => {}
        }
        Ok(reach)
    }

    /// Whether `host` may be connected to at this address, on this port or on those of its class.
    pub fn check_address(
        &self,
        reach: Reach,
        host: &Host,
        address: IpAddr,
        port: u16,
    ) -> Result<(), GuardRefusal> {
        let is_dev = self.loopback && unwrap_embedded(address).is_loopback();
        if is_dev || self.allow.iter().any(|allow| allow.covers(host, Some(address), port)) {
            return Ok(());
        }
        if let Some(kind) = non_public_reason(address) {
            return Err(GuardRefusal::NotPublic { host: host.clone(), port, kind });
        }
        match reach {
            Reach::PublicAndExceptions => Ok(()),
            Reach::ExceptionsOnly => Err(GuardRefusal::PlainHttp { host: host.clone() }),
        }
    }

    /// Ports to which different exceptions apply: one of each class.
    pub fn port_classes(&self) -> BTreeSet<u16> {
        let named = self.allow.iter().flat_map(|allow| match allow.ports {
            Ports::Default => vec![80, 443],
            Ports::One(port) => vec![port],
            Ports::All => Vec::new(),
        });
        named.chain([OTHER_PORT]).collect()
    }
}

/// The guard's refusal among an error and its causes.
pub fn find_refusal<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e GuardRefusal> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|cause| cause.downcast_ref())
}

/// The port as it is written behind a host; the default ports need not be.
fn shown_port(port: u16) -> String {
    if matches!(port, OTHER_PORT | 80 | 443) { String::new() } else { format!(":{port}") }
}
