//! The sockets, and what answers on each.

use std::{net::SocketAddr, path::Path, sync::Arc};

use countersign_store::data_dir::DataDir;
use tokio::{
    net::{TcpListener, UnixListener},
    runtime::Handle,
};

use super::error::StartError;
use crate::{
    admin,
    answer::{RequestHead, Service},
    background::Background,
    connections::{ConnectionLimits, Connections},
    due::DueRotations,
    listen::{self, Gate, Lanes},
    proxies::TrustedProxies,
    state::App,
    table::{self, answer_read},
    tls::Tls,
};

/// A metrics reader needs one.
const METRICS_CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 32, per_address: None };

/// A socket, and the address that the system gave it.
pub(super) struct BoundListener {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
}

pub(super) fn bind(address: SocketAddr) -> Result<BoundListener, StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = listen::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(BoundListener { listener, address })
}

pub(super) fn serve_main(
    app: &App,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    proxies: TrustedProxies,
    due: &DueRotations,
) -> Result<Background, StartError> {
    let reader = app.clone();
    let service = Service {
        router: table::build(app.clone()),
        read: move |head: RequestHead<'_>| answer_read(&reader, head),
        kinds: table::kinds(),
        requests: Arc::clone(&app.requests),
        limiter: app.limiter.clone(),
        proxies: Arc::new(proxies),
        due: due.clone(),
        workers: Handle::current(),
    };
    let gate = Gate {
        connections: Arc::clone(&app.connections),
        tls,
        lanes: Lanes::start().map_err(StartError::Threads)?,
    };
    Ok(Background::start(|stopped| listen::serve(listener, service, gate, stopped)))
}

pub(super) fn serve_metrics(app: &App, listener: TcpListener) -> Background {
    let service = Service {
        router: table::build_metrics(app.clone()),
        read: |_: RequestHead<'_>| None,
        kinds: table::kinds(),
        // Not mixed with the requests that matter.
        requests: Arc::default(),
        limiter: None,
        proxies: Arc::new(TrustedProxies::default()),
        due: DueRotations::default(),
        workers: Handle::current(),
    };
    let gate = Gate {
        connections: Arc::new(Connections::new(METRICS_CONNECTIONS)),
        tls: None,
        lanes: Lanes::shared(),
    };
    Background::start(|stopped| listen::serve(listener, service, gate, stopped))
}

/// Without it the server works, and its operator has to stop it for changes.
pub(super) fn bind_admin(data_dir: &Path) -> Option<UnixListener> {
    let path = DataDir::admin_socket_at(data_dir);
    let bound = admin::bind(&path);
    bound
        .inspect_err(|error| {
            let path = path.display();
            tracing::warn!(%error, %path, "`countersign admin` cannot reach this server: its socket cannot be made");
        })
        .ok()
}

pub(super) fn serve_admin(app: &App, listener: UnixListener) -> Background {
    let app = app.clone();
    Background::start(|stopped| admin::serve(listener, app, stopped))
}
