//! Start and end of the server: the one place that knows all its parts.

pub(crate) mod opening;

use std::{future::pending, io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use countersign_forge::https::SetupError;
use countersign_store::machine::{clock::Clock, data_dir::DataDir};
use thiserror::Error;
use tokio::{net::TcpListener, net::UnixListener, runtime::Handle, sync::watch, time::sleep};

use crate::api::{state, state::App};
use crate::follow::background::{Background, BoxedError, Rounds};
use crate::follow::mirror::{HistoryCopier, LogCopier};
use crate::follow::network::ListReader;
use crate::follow::witness::{Watcher, WitnessSettings};
use crate::limits::connections::{ConnectionLimits, Connections, TrustedProxies};
use crate::nodes::asking::{AskedWitness, is_restored, start_asking};
use crate::nodes::node::ServerRole;
use crate::operate::{config::Settings, disk_space, tls::Tls, tls::TlsError};
use crate::serve::answer::{RequestHead, Service, http_date};
use crate::serve::listen::Lanes;
use crate::serve::start::opening::{Opened, no_threads};
use crate::serve::{admin, due, due::DueRotations, listen, table, table::answer_read};

/// The pause between two looks at whether the server is ready.
const READY_PAUSE: Duration = Duration::from_millis(20);

/// Why a server does not start.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct StartError(#[from] pub BoxedError);

#[derive(Debug)]
pub struct Running {
    pub address: SocketAddr,
    pub metrics_address: Option<SocketAddr>,
    app: App,
    tls: Option<Arc<Tls>>,
    main: Background,
    metrics: Option<Background>,
    /// Send webhooks, ask witnesses, or do the work of one. They end before the log does.
    before_log: Vec<Background>,
    /// Look after the catalogue, the disk, and signers that are due.
    rounds: [Rounds; 3],
    /// Follow the order or the origin, and answer the operator. They end last.
    last: Vec<Background>,
    rotations: DueRotations,
    /// Counts how often the operator has asked to read lists of logs again.
    lists: watch::Sender<u64>,
}

impl Running {
    pub fn app(&self) -> &App {
        &self.app
    }

    /// What happens before each request: signers whose time has come take effect.
    pub async fn settle_due(&self) {
        self.rotations.settle().await;
    }

    /// Waits until the server can accept changes, as `/readyz` says.
    pub async fn await_ready(&self) {
        while self.app.readiness().is_err() {
            sleep(READY_PAUSE).await;
        }
    }

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads certificate and key again; false if there are none.
    pub fn reload_certificate(&self) -> Result<bool, TlsError> {
        self.tls.as_ref().map_or(Ok(false), |tls| tls.reload().map(|()| true))
    }

    /// Reads the lists of logs again, if this is a witness that has any.
    pub fn reload_lists(&self) {
        self.lists.send_modify(|asked| *asked += 1);
    }

    /// Accepts no more requests, finishes those under way, and releases the data directory. Metrics can be read until
    /// then.
    pub async fn stop(self) -> io::Result<()> {
        let app = Arc::clone(&self.app);
        app.is_stopping.send_replace(true);
        let giving_up = async {
            if let Some(node) = app.role.node() {
                node.give_up_database().await;
            }
            pending::<()>().await;
        };
        tokio::select! {
            stopped = self.stop_parts() => stopped,
            () = giving_up => Ok(()),
        }
    }

    async fn stop_parts(self) -> io::Result<()> {
        self.main.stop().await?;
        futures_util::future::try_join_all(self.before_log.into_iter().map(Background::stop)).await?;
        if let Some(log) = self.app.log.get().cloned() {
            // Its thread may be reading, or wait for its key's agent.
            tokio::task::spawn_blocking(move || log.stop()).await.map_err(io::Error::other)?;
        }
        self.app.catalogue.stop();
        for rounds in self.rounds {
            rounds.stop().await?;
        }
        for part in self.last.into_iter().chain(self.metrics) {
            part.stop().await?;
        }
        Ok(())
    }
}

/// Opens the data directory and serves it. Must be called inside a Tokio runtime.
pub async fn start(settings: Settings, clock: Clock) -> Result<Running, StartError> {
    Ok(open_and_serve(settings, clock).await?)
}

async fn open_and_serve(settings: Settings, clock: Clock) -> Result<Running, BoxedError> {
    // Commits and answers cannot have such dates. A clock that goes wrong later does no harm.
    let wrong =
        "this machine's clock is before 1970, or after the year 9999: set it, and start the server again";
    http_date().ok_or(wrong)?;
    let tls = settings.tls.clone().map(Tls::read).transpose()?.map(Arc::new);
    let Opened { app, webhooks, asked } = opening::open(&settings, &clock).await?;
    let admin = bind_admin(app.store.data_dir.path());
    let (main, address) = bind(settings.listen)?;
    let (metrics, metrics_address) = settings.metrics_listen.map(bind).transpose()?.unzip();
    let rotations = DueRotations::of(&app);
    let lists = watch::Sender::default();
    let following = start_following(&app, clock.clone())?;
    let admin =
        admin.map(|listener| Background::start(|stopped| admin::serve(listener, app.clone(), stopped)));
    let mut before_log = webhooks.start(&app.store, &clock, &app.upstream.fetcher);
    before_log.extend(start_witnessing(&app, asked, settings.witness, &lists)?);
    let start_rounds = || -> io::Result<_> {
        let due = due::watch(rotations.clone(), Handle::current())?;
        Ok([state::follow(&app.catalogue)?, disk_space::watch(settings.data_dir)?, due])
    };
    Ok(Running {
        address,
        metrics_address,
        main: serve_main(&app, main, tls.clone(), settings.trusted_proxies, &rotations)?,
        metrics: metrics.map(|listener| serve_metrics(&app, listener)),
        before_log,
        rounds: start_rounds().map_err(no_threads)?,
        last: following.into_iter().chain(admin).collect(),
        lists,
        rotations,
        tls,
        app,
    })
}

// The sockets, and what answers on each.

/// A metrics reader needs one.
const METRICS_CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 32, per_address: None };

/// Opens a socket, and says which address the system gave it.
fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let bound = listen::bind(address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|error| format!("cannot listen on {address}: {error}"))
}

fn serve_main(
    app: &App,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    proxies: TrustedProxies,
    due: &DueRotations,
) -> Result<Background, BoxedError> {
    let reader = app.clone();
    let service = Service {
        connections: Arc::clone(&app.connections),
        tls,
        router: table::build(app.clone()),
        read: move |head: RequestHead<'_>| answer_read(&reader, head),
        kinds: table::kinds(),
        requests: Arc::clone(&app.requests),
        limiter: app.limiter.clone(),
        proxies: Arc::new(proxies),
        due: due.clone(),
        workers: Handle::current(),
    };
    let lanes = Lanes::start().map_err(no_threads)?;
    Ok(Background::start(|stopped| listen::serve(listener, service, lanes, stopped)))
}

fn serve_metrics(app: &App, listener: TcpListener) -> Background {
    let service = Service {
        connections: Arc::new(Connections::new(METRICS_CONNECTIONS)),
        tls: None,
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
    Background::start(|stopped| listen::serve(listener, service, Lanes::shared(), stopped))
}

/// Opens the socket of the operator. Without it the server works, but its operator has to stop it for changes.
fn bind_admin(data_dir: &Path) -> Option<UnixListener> {
    let path = DataDir::admin_socket_at(data_dir);
    let bound = admin::bind(&path);
    bound
        .inspect_err(|error| {
            let path = path.display();
            tracing::warn!(%error, %path, "`countersign admin` cannot reach this server: its socket cannot be made");
        })
        .ok()
}

// The tasks that follow something else: the order of the nodes, an origin, or a log.

/// Follows the order on a node, and the origin on a mirror.
fn start_following(app: &App, clock: Clock) -> Result<Option<Background>, SetupError> {
    let store = Arc::clone(&app.store);
    Ok(match &app.role {
        ServerRole::Single { .. } => None,
        ServerRole::Node(node) => Some(Background::start(|stopped| node.follow(store, stopped))),
        ServerRole::Mirror(state) => {
            let copier = HistoryCopier::new(Arc::clone(state), store, clock)?;
            Some(Background::start(|stop| copier.run(stop)))
        }
    })
}

/// The tasks between a log and its witnesses, on whichever side this server is.
fn start_witnessing(
    app: &App,
    asked: Option<Vec<AskedWitness>>,
    watching: Option<WitnessSettings>,
    lists: &watch::Sender<u64>,
) -> Result<Vec<Background>, SetupError> {
    let mut witnessing = Vec::new();
    if let (Some(log), Some(asked)) = (app.log.get(), asked) {
        let (stats, is_restored) = (app.cosigning.clone(), is_restored(&app.role, app.now()));
        witnessing.push(start_asking(log, asked, stats, is_restored, app.clock.clone())?);
    }
    if let (Some(witness), Some(settings), Some(mirror)) = (&app.witness, watching, app.role.mirror()) {
        for source in settings.lists.clone() {
            let reader = ListReader::new(Arc::clone(witness), source, lists.subscribe())?;
            witnessing.push(Background::start(|stop| reader.run(stop)));
        }
        let (witness, store) = (Arc::clone(witness), Arc::clone(&app.store));
        let watcher = Watcher::new(witness, settings, mirror.origin.clone(), store, app.clock.clone())?;
        witnessing.push(Background::start(|stop| watcher.run(stop)));
    }
    // A witness derives the log already, and need not be asked for it.
    if let (ServerRole::Mirror(mirror), None) = (&app.role, &app.witness) {
        let copier = LogCopier::new(Arc::clone(mirror), Arc::clone(&app.store), app.log.clone())?;
        witnessing.push(Background::start(|stop| copier.run(stop)));
    }
    Ok(witnessing)
}
