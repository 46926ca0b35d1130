//! Connections: whom the server admits, and whom it lets go.

use std::sync::Arc;

use axum::Router;
use countersign_server::limits::connections::{ConnectionLimits, Connections};
use countersign_server::serve::answer::{Read, RequestHead, Service};
use countersign_server::serve::table;
use tokio::runtime::Handle;

mod connections;
mod host;
mod lanes;
mod listeners;
mod proxies;
mod stream;

/// Admits every client, with as little as possible besides the routes.
pub(crate) fn service(router: Router) -> Service<impl Read> {
    let limits = ConnectionLimits { total: 64, per_address: None };
    Service {
        connections: Arc::new(Connections::new(limits)),
        tls: None,
        router,
        read: |_: RequestHead<'_>| None,
        kinds: table::kinds(),
        requests: Arc::default(),
        limiter: None,
        proxies: Arc::default(),
        due: Default::default(),
        workers: Handle::current(),
    }
}
