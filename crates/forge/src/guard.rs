//! Says where outgoing requests may go (D28): public addresses, and what the operator allowed besides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::{collections::BTreeSet, error::Error as StdError, fmt, str::FromStr, sync::Arc};

use countersign_core::values::path::{RepoPath, Scheme, parse_port};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;
use url::Url;

use crate::{file_server::FileServers, url::Host, url::HostProblem, url::has_user_info, url::shown_text};

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

// Which IP addresses are public: globally routable unicast, by the IANA special-purpose registries (D28).

/// Why an address is not a public one; `None` where it is.
pub fn non_public_reason(address: IpAddr) -> Option<&'static str> {
    match unwrap_embedded(address) {
        IpAddr::V4(v4) => NON_PUBLIC_V4.iter().find(|(net, _)| net.contains(&v4)).map(|(_, reason)| *reason),
        IpAddr::V6(v6) => {
            let listed = NON_PUBLIC_V6.iter().find(|(net, _)| net.contains(&v6)).map(|(_, reason)| *reason);
            listed.or((!GLOBAL_UNICAST.contains(&v6)).then_some("a reserved address"))
        }
    }
}

/// The IPv4 address that packets end up at, where an IPv6 address only wraps one: IPv4-mapped, NAT64 and 6to4.
pub fn unwrap_embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let bits = v6.to_bits();
    if NAT64.contains(&v6) || MAPPED.contains(&v6) {
        return IpAddr::V4(Ipv4Addr::from_bits(bits as u32));
    }
    if SIX_TO_FOUR.contains(&v6) {
        return IpAddr::V4(Ipv4Addr::from_bits((bits >> 80) as u32));
    }
    address
}

const MAPPED: Ipv6Net = v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96);
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

const NON_PUBLIC_V4: [(Ipv4Net, &str); 16] = [
    (v4([0, 0, 0, 0], 8), "an unspecified address"),
    (v4([10, 0, 0, 0], 8), "a private address"),
    (v4([100, 64, 0, 0], 10), "a shared (carrier) address"),
    (v4([127, 0, 0, 0], 8), "a loopback address"),
    // Azure's platform service: a public address by number, answered on every virtual machine's own host.
    (v4([168, 63, 129, 16], 32), "a cloud metadata address"),
    (v4([169, 254, 0, 0], 16), "a link-local address"),
    (v4([172, 16, 0, 0], 12), "a private address"),
    (v4([192, 0, 0, 0], 24), "a reserved address"),
    (v4([192, 0, 2, 0], 24), "a documentation address"),
    (v4([192, 88, 99, 0], 24), "a relay address"),
    (v4([192, 168, 0, 0], 16), "a private address"),
    (v4([198, 18, 0, 0], 15), "a benchmarking address"),
    (v4([198, 51, 100, 0], 24), "a documentation address"),
    (v4([203, 0, 113, 0], 24), "a documentation address"),
    (v4([224, 0, 0, 0], 4), "a multicast address"),
    (v4([240, 0, 0, 0], 4), "a reserved address"),
];

/// The ranges of IPv6 that are not public. Those outside 2000::/3 would be refused anyway: they are here for the reason
/// that is given.
const NON_PUBLIC_V6: [(Ipv6Net, &str); 12] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "an unspecified address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    // Which of its bits are the IPv4 address depends on the translator, so it cannot be unwrapped.
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "a local translation address"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "a discard address"),
    // Teredo (2001::/32), benchmarking, ORCHID and other protocol assignments.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "a protocol assignment address"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "a documentation address"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "a documentation address"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "a segment routing address"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a unique local address"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a site-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]), prefix)
}

const fn v6(s: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]), prefix)
}

// Exceptions from the rule that only public addresses are fetched: a host or a network, with the ports it is for (D49).

/// One exception: the value of one `--allow-fetch`, or a place of a configured forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowFetch {
    to: Destination,
    ports: Ports,
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
    fn covers(&self, host: &Host, address: Option<IpAddr>, port: u16) -> bool {
        let is_there = match &self.to {
            Destination::Host(allowed) => allowed == host,
            Destination::Net(net) => {
                address.is_some_and(|ip| net.contains(&ip) || net.contains(&unwrap_embedded(ip)))
            }
        };
        is_there && self.ports.cover(port)
    }

    fn is_net_at(&self, port: u16) -> bool {
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

// Resolves names behind the guard: a connection is made to an address that was checked, and to no other.

/// The operating system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

/// The resolver that `reqwest` asks, once per connection.
#[derive(Clone)]
pub(crate) struct GuardedResolver {
    pub(crate) guard: Arc<Guard>,
    pub(crate) reach: Reach,
    /// A port of the class that its client connects to: a resolver is not told the port.
    pub(crate) port: u16,
    pub(crate) inner: Arc<dyn Resolve>,
}

/// Resolves the host of a guarded URL, for a client that asks no other. What else it resolves is the user's choice,
/// such as a proxy.
pub struct HostResolver {
    guarded: GuardedResolver,
    host: Host,
}

impl fmt::Debug for HostResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostResolver").field(&self.host).finish()
    }
}

impl HostResolver {
    /// Checks the URL, and is for requests to it.
    pub fn new(guard: Guard, url: &Url) -> Result<Self, GuardRefusal> {
        let (reach, host) = (guard.admit(url)?, Host::parse(url.host_str().unwrap_or_default())?);
        let guarded = GuardedResolver {
            guard: Arc::new(guard),
            reach,
            port: OTHER_PORT,
            inner: Arc::new(SystemResolver),
        };
        Ok(Self { guarded, host })
    }
}

impl Resolve for HostResolver {
    fn resolve(&self, name: Name) -> Resolving {
        if name.as_str().eq_ignore_ascii_case(self.host.as_str()) {
            self.guarded.resolve(name)
        } else {
            SystemResolver.resolve(name)
        }
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // `reqwest` puts the URL's port in the place of 0.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, reach, port) = (Arc::clone(&self.guard), self.reach, self.port);
        let host = Host::parse(name.as_str());
        let resolving = self.inner.resolve(name);
        Box::pin(async move {
            let host = host.map_err(GuardRefusal::from)?;
            let mut refusal = None;
            let mut admitted: Vec<SocketAddr> = resolving.await?.collect();
            admitted.retain(|address| {
                let checked = guard.check_address(reach, &host, address.ip(), port);
                checked.map_err(|refused| refusal = Some(refused)).is_ok()
            });
            if !admitted.is_empty() {
                return Ok(Box::new(admitted.into_iter()) as Addrs);
            }
            Err(refusal.map_or_else(|| "the name has no address".into(), Into::into))
        })
    }
}
