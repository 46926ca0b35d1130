//! Says where requests may go: a server's, behind its guard (D28); a user's own, wherever they say.

use std::{collections::HashMap, sync::Arc};

use countersign_core::values::url::Scheme;
use reqwest::{
    Client, ClientBuilder,
    dns::Resolve,
    header::{ACCEPT_ENCODING, HeaderMap, HeaderValue},
    redirect::Policy,
};

use super::{error::HopRefusal, pace::Timeouts, route::FetchRoute};
use crate::{
    guard::{Guard, GuardRefusal, OTHER_PORT, Reach},
    https::{SetupError, https_client},
    resolver::GuardedResolver,
    url::has_user_info,
};

/// How much an HTTP/2 server may send before we acknowledge it. With the usual 2 MiB, a line with a round trip of 100 ms
/// would carry 20 MB a second at most.
const USER_WINDOW_BYTES: u32 = 16 << 20;

#[derive(Debug, Clone)]
pub(super) enum FetchAccess {
    Guarded {
        guard: Arc<Guard>,
        // A resolver is not told for which scheme and port it resolves. So each reach has a client of its own, for each
        // class of ports: those that exceptions name, and all others.
        clients: Arc<HashMap<(u16, Reach), Client>>,
    },
    OfUser {
        client: Client,
    },
}

impl FetchAccess {
    pub(super) fn guarded(
        guard: Guard,
        timeouts: Timeouts,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, SetupError> {
        let guard = Arc::new(guard);
        let client = |port, reach| {
            let inner = Arc::clone(&resolver);
            let resolver = GuardedResolver { guard: Arc::clone(&guard), reach, port, inner };
            https_client(|builder| {
                let builder = set_up(builder, timeouts).no_proxy();
                builder.read_timeout(timeouts.idle).dns_resolver(resolver.clone())
            })
        };
        let mut clients = HashMap::new();
        for port in guard.port_classes() {
            for reach in [Reach::PublicAndExceptions, Reach::ExceptionsOnly] {
                clients.insert((port, reach), client(port, reach)?);
            }
        }
        Ok(Self::Guarded { guard, clients: Arc::new(clients) })
    }

    pub(super) fn of_user(timeouts: Timeouts) -> Result<Self, SetupError> {
        // No `read_timeout`: it also counts the time in which we do not ask for the next bytes, so that a program which
        // was stopped for a while would find its download timed out. `Download::chunk` counts only its own waiting.
        let client = https_client(|builder| {
            set_up(builder, timeouts)
                .http2_initial_stream_window_size(USER_WINDOW_BYTES)
                .http2_initial_connection_window_size(USER_WINDOW_BYTES)
        })?;
        Ok(Self::OfUser { client })
    }

    /// The client that may make the next request of this route.
    pub(super) fn client_for(&self, route: &FetchRoute) -> Result<&Client, HopRefusal> {
        match self {
            Self::Guarded { guard, clients } => {
                let reach = guard.admit(&route.current)?;
                let port = route.current.port_or_known_default().unwrap_or(OTHER_PORT);
                let client = clients.get(&(port, reach)).or_else(|| clients.get(&(OTHER_PORT, reach)));
                Ok(client.expect("every reach has a client for other ports"))
            }
            Self::OfUser { client } => {
                let url = &route.current;
                if Scheme::parse(url.scheme()).is_none() {
                    return Err(HopRefusal::NotHttp);
                }
                if has_user_info(url) {
                    return Err(GuardRefusal::UserInfo.into());
                }
                if route.left_tls {
                    return Err(HopRefusal::LeavesTls);
                }
                Ok(client)
            }
        }
    }
}

/// What all clients have in common: redirects are ours to follow, and bytes come as the file has them.
fn set_up(builder: ClientBuilder, timeouts: Timeouts) -> ClientBuilder {
    let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    builder.default_headers(headers).redirect(Policy::none()).referer(false).connect_timeout(timeouts.connect)
}
