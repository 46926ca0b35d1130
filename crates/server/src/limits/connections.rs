//! Decides which connections stay open when there are too many.
//!
//! A client that opens thousands of connections and sends a byte at a time must not keep others out, not even clients
//! behind the same router. So a new connection never waits: it takes the place of the connection that has waited
//! longest for its client. A connection that works on a request never has to go.

use std::{convert::Infallible, net::IpAddr, net::SocketAddr, str::FromStr, sync::Arc, time::Instant};

use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, HeaderName, request::Parts};
use ipnet::IpNet;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::semaphore::{Claimant, FairSemaphore, Permit, SemaphoreRules};
use crate::limits::{MeteredClient, client_wait::ClientWait, client_wait::Dropped, client_wait::Listening};
use crate::{limits::network_of, metrics::Counter};

/// File descriptors for everything else: packs, the database, outgoing connections.
const OTHER_FILES: u64 = 768;
/// Connections with a large head, each of which has a larger buffer. Those that have to go take a moment to close.
/// Until then there can be twice as many.
const MAX_LARGE_HEADS: usize = 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub total: usize,
    /// The most connections of one address, unless it is a trusted proxy.
    pub per_address: Option<usize>,
}

#[derive(Debug)]
pub struct Connections {
    /// The limits, lowered to fit the limit of open files.
    pub limits: ConnectionLimits,
    pub permits: Arc<FairSemaphore>,
    large_heads: Arc<FairSemaphore>,
    pub accepted: Counter,
    pub too_slow: Counter,
    pub gave_way: Counter,
}

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub struct Admitted {
    pub client_wait: Arc<ClientWait>,
    _permit: Permit,
}

impl Connections {
    pub fn new(limits: ConnectionLimits) -> Self {
        let limits = limits.within_file_limit(raise_file_limit());
        let share = limits.per_address.unwrap_or(limits.total);
        let rules = SemaphoreRules { share, ..SemaphoreRules::of(limits.total) };
        Self {
            limits,
            permits: FairSemaphore::new(rules),
            large_heads: FairSemaphore::new(SemaphoreRules::of(2 * MAX_LARGE_HEADS)),
            accepted: Counter::default(),
            too_slow: Counter::default(),
            gave_way: Counter::default(),
        }
    }

    /// Admits a new connection; `None` if all others are at work. `peer` is `None` for a trusted proxy: only the total
    /// counts then. It also counts alone if addresses have no limit.
    pub fn admit(&self, peer: Option<IpAddr>, now: Instant) -> Option<Admitted> {
        let counted = peer.filter(|_| self.limits.per_address.is_some());
        let claimant = Claimant::at(counted.map(network_of));
        let client_wait = Arc::new(ClientWait::new(now));
        let permit = self.permits.enter(claimant, 1, Some(Arc::clone(&client_wait))).ok()?;
        self.accepted.add(1);
        Some(Admitted { client_wait, _permit: permit })
    }

    pub fn note_dropped(&self, dropped: Dropped) {
        let count = match dropped {
            Dropped::TooSlow => &self.too_slow,
            Dropped::GaveWay => &self.gave_way,
        };
        count.add(1);
    }

    /// Admits a large head. If there are too many, the oldest of them go; `None` if that takes too long.
    pub fn admit_large_head(&self) -> Option<Permit> {
        let Ok(admitted) = self.large_heads.try_take(Claimant::default()) else {
            self.gave_way.add(1);
            return None;
        };
        if self.large_heads.held() > MAX_LARGE_HEADS {
            self.permits.end_idle(MAX_LARGE_HEADS, ClientWait::has_large_head);
        }
        Some(admitted)
    }
}

impl ConnectionLimits {
    /// Lowers the limits so that there are no more connections than file descriptors.
    pub fn within_file_limit(self, files: Option<u64>) -> Self {
        let Some(files) = files else { return self };
        let room = files.saturating_sub(OTHER_FILES).max(files / 2);
        let total = self.total.min(usize::try_from(room).unwrap_or(usize::MAX)).max(1);
        if total < self.total {
            tracing::warn!(connections = total, files, "the limit of open files allows fewer connections");
        }
        // At most half, so that one address never has them all.
        Self { total, per_address: self.per_address.map(|most| most.min(total / 2).max(1)) }
    }
}

/// Raises the limit of open files as far as the system allows, and returns it if there is one.
fn raise_file_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            current
        }
    }
}

/// What handlers can know about where a request came from. Both are `None` for a request that came over no connection.
#[derive(Debug, Clone, Default)]
pub struct RequestSender {
    pub(crate) client: Option<MeteredClient>,
    pub(crate) client_wait: Option<Arc<ClientWait>>,
}

impl RequestSender {
    pub(crate) fn of(parts: &Parts) -> Self {
        parts.extensions.get().cloned().unwrap_or_default()
    }

    /// The address, as a claimant of permits.
    pub(crate) fn claimant(&self) -> Claimant {
        Claimant::at(self.client.as_ref().map(|client| client.network))
    }

    /// The client listens to a stream until the result is dropped.
    pub(crate) fn listen(&self) -> Option<Listening> {
        self.client_wait.as_ref().map(ClientWait::listen)
    }
}

impl<S: Sync> FromRequestParts<S> for RequestSender {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

// Which address a request comes from: the peer's own, or the one that a trusted proxy names.

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A proxy, or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyNet(IpNet);

impl FromStr for ProxyNet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let net = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let wanted = "Write an IP address, or a network such as `10.1.0.0/16`";
        net.map(Self).map_err(|_| format!("`{text}` is not an address or network of proxies. {wanted}"))
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
