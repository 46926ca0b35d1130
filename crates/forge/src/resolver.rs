//! Resolves names behind the guard: a connection is made to an address that was checked, and to no other.

use std::{fmt, net::SocketAddr, sync::Arc};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Url;

use crate::{
    guard::{Guard, GuardRefusal, OTHER_PORT, Reach},
    host::Host,
};

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

/// Resolves the host of a guarded URL, for a client that asks no other. What else it resolves is the user's choice, such
/// as a proxy.
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
