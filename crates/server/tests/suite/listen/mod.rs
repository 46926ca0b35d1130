//! Connections: whom the server admits, and whom it lets go.

mod connections;
mod host;
mod lanes;
mod listeners;
mod proxies;
mod stream;

use std::sync::Arc;

use axum::Router;
use countersign_server::answer::{Read, RequestHead, Service};
use countersign_server::connections::{ConnectionLimits, Connections};
use countersign_server::listen::{Gate, Lanes};
use countersign_server::table;
use tokio::runtime::Handle;

/// Admits every client, with as little as possible besides the routes.
pub(crate) fn service(router: Router) -> (Service<impl Read>, Gate) {
    let limits = ConnectionLimits { total: 64, per_address: None };
    let gate = Gate { connections: Arc::new(Connections::new(limits)), tls: None, lanes: Lanes::shared() };
    let service = Service {
        router,
        read: |_: RequestHead<'_>| None,
        kinds: table::kinds(),
        requests: Arc::default(),
        limiter: None,
        proxies: Arc::default(),
        due: Default::default(),
        workers: Handle::current(),
    };
    (service, gate)
}
