//! The sockets and what answers on each, and the tasks that follow something else.

use std::{net::SocketAddr, path::Path, sync::Arc};

use countersign_store::machine::{clock::Clock, data_dir::DataDir};
use tokio::{net::TcpListener, net::UnixListener, runtime::Handle};

use crate::follow::background::Background;
use crate::follow::mirror::{Follower, LogCopier, MirrorError};
use crate::follow::witness::{WatchParts, Watcher, WitnessSettings};
use crate::limits::connections::{ConnectionLimits, Connections, TrustedProxies};
use crate::nodes::{asking::AskedWitness, asking::AskedWitnesses, asking::Restored, node::ServerRole};
use crate::serve::answer::{RequestHead, Service};
use crate::serve::listen::{Gate, Lanes};
use crate::serve::{admin, due::DueRotations, listen, start::opening::StartError, table, table::answer_read};
use crate::{api::state::App, operate::tls::Tls};

/// A metrics reader needs one.
const METRICS_CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 32, per_address: None };

/// A socket, and the address that the system gave it.
pub(crate) struct BoundListener {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
}

pub(crate) fn bind(address: SocketAddr) -> Result<BoundListener, StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = listen::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(BoundListener { listener, address })
}

pub(crate) fn serve_main(
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

pub(crate) fn serve_metrics(app: &App, listener: TcpListener) -> Background {
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

/// Opens the socket of the operator. Without it the server works, but its operator has to stop it for changes.
pub(crate) fn bind_admin(data_dir: &Path) -> Option<UnixListener> {
    let path = DataDir::admin_socket_at(data_dir);
    let bound = admin::bind(&path);
    bound
        .inspect_err(|error| {
            let path = path.display();
            tracing::warn!(%error, %path, "`countersign admin` cannot reach this server: its socket cannot be made");
        })
        .ok()
}

pub(crate) fn serve_admin(app: &App, listener: UnixListener) -> Background {
    let app = app.clone();
    Background::start(|stopped| admin::serve(listener, app, stopped))
}

// The tasks that follow something else: the order of the nodes, an origin, or a log.

/// Follows the order on a node, and the origin on a mirror.
pub(crate) fn start_following(app: &App, clock: Clock) -> Result<Option<Background>, StartError> {
    let store = Arc::clone(&app.store);
    Ok(match &app.role {
        ServerRole::Single { .. } => None,
        ServerRole::Node(node) => Some(Background::start(|stopped| node.follow(store, stopped))),
        ServerRole::Mirror(state) => {
            let follower = Follower::new(Arc::clone(state), store, clock).map_err(MirrorError::from)?;
            Some(Background::start(|stop| follower.run(stop)))
        }
    })
}

/// The tasks between a log and its witnesses, on whichever side this server is.
pub(crate) fn start_witnessing(
    app: &App,
    asked: Option<Vec<AskedWitness>>,
    watching: Option<WitnessSettings>,
) -> Result<Vec<Background>, StartError> {
    let mut witnessing = Vec::new();
    if let (Some(log), Some(asked)) = (app.log.get(), asked) {
        let (stats, restored) = (app.cosigning.clone(), Restored::of(&app.role, app.now()));
        let asking = AskedWitnesses::new(log, asked, stats, restored, app.clock.clone())?;
        witnessing.push(Background::start(|stop| asking.run(stop)));
    }
    if let (Some(witness), Some(settings), Some(mirror)) = (&app.witness, watching, app.role.mirror()) {
        let watcher = Watcher::new(WatchParts {
            witness: Arc::clone(witness),
            settings,
            origin: mirror.origin.clone(),
            store: Arc::clone(&app.store),
            // For files that can be deleted.
            dir: app.store.data_dir.witness().join("replay"),
            clock: app.clock.clone(),
        })?;
        witnessing.push(Background::start(|stop| watcher.run(stop)));
    }
    // A witness derives the log already, and need not be asked for it.
    if let (ServerRole::Mirror(mirror), None) = (&app.role, &app.witness) {
        let copier = LogCopier::new(Arc::clone(mirror), Arc::clone(&app.store), app.log.clone())?;
        witnessing.push(Background::start(|stop| copier.run(stop)));
    }
    Ok(witnessing)
}
