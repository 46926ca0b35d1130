//! Start and end of the server: the one place that knows all its parts.

mod error;

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use countersign_forge::{fetch::Fetcher, origin::speaks_for, resolver::SystemResolver};
use countersign_store::{
    Store, StoreRole,
    clock::Clock,
    data_dir::DataDir,
    open::{OpenSettings, open_repository},
};
use tokio::{
    net::{TcpListener, UnixListener},
    runtime::Handle,
    sync::watch,
    task::JoinHandle,
};

pub use self::error::StartError;
use crate::{
    admin,
    answer::{RequestHead, Service},
    asking::{self, AskedWitness, CosigningStats, Restored},
    blocks::Blocks,
    catalogue,
    config::Settings,
    date::http_date,
    disk_space,
    due::{self, DueRotations},
    events::Audience,
    held_store::HeldStore,
    limits::{
        Limiter,
        places::{MinimumPace, PlaceRules, SharedPlaces},
    },
    listen::{
        self, Gate, Lanes,
        connections::{ConnectionLimits, Connections},
    },
    log_slot::LogSlot,
    mirror::{self, CopyParts, MirrorError, MirrorSettings},
    node::UnstartedNode,
    openapi::Reference,
    proxies::TrustedProxies,
    rendering::Renderings,
    role::ServerRole,
    rounds::Rounds,
    sending::Sending,
    state::{App, AppParts},
    table::{self, answer_read},
    tls::{Tls, TlsError},
    transparency,
    upstream::{
        Upstream,
        releases::{ReleaseLimits, Releases},
        turns::FetchTurns,
    },
    webhooks::{Webhooks, settings::Webhook},
    witness::{self, WatchParts, WitnessSettings},
};

/// Large bodies that are received at the same time.
const MAX_LARGE_BODIES: usize = 32;
/// The server does not know the sender before the whole body is there. So addresses share the places, and bodies have a
/// minimum pace.
const LARGE_BODIES: PlaceRules = PlaceRules {
    total: MAX_LARGE_BODIES,
    share: MAX_LARGE_BODIES / 2,
    strangers: MAX_LARGE_BODIES,
    waiting: 64,
    max_wait: Duration::from_secs(1),
    grace: Some(Duration::from_millis(500)),
    pace: Some(MinimumPace { bytes_per_second: 16 * 1024, after: Duration::from_secs(5) }),
};
/// Enough for any release that signers would wait for.
const RELEASE_TIME: Duration = Duration::from_secs(6 * 60 * 60);
/// A metrics reader needs one.
const METRICS_CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 32, per_address: None };

static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::of(table::all().rows));

#[derive(Debug)]
pub struct Running {
    pub address: SocketAddr,
    pub metrics_address: Option<SocketAddr>,
    app: App,
    tls: Option<Arc<Tls>>,
    main: Background,
    metrics: Option<Background>,
    webhooks: Vec<Background>,
    catalogue: Rounds,
    disk: Rounds,
    due: Rounds,
    rotations: DueRotations,
    following: Option<Background>,
    /// Asks witnesses, or is the work of one.
    witnessing: Vec<Background>,
    admin: Option<Background>,
}

/// Work that goes on until it is told to stop.
#[derive(Debug)]
struct Background {
    stop: watch::Sender<bool>,
    working: JoinHandle<()>,
}

impl Running {
    pub fn app(&self) -> &App {
        &self.app
    }

    /// What happens before each request: signers whose time has come take effect.
    pub async fn settle_due(&self) {
        self.rotations.settle().await;
    }

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads certificate and key again; false if there are none.
    pub fn reload_certificate(&self) -> Result<bool, TlsError> {
        self.tls.as_ref().map_or(Ok(false), |tls| tls.reload().map(|()| true))
    }

    /// Accepts no more requests, finishes those under way, and releases the data directory. Metrics can be read until
    /// then.
    pub async fn stop(self) -> io::Result<()> {
        self.app.is_stopping.send_replace(true);
        self.main.stop().await?;
        futures_util::future::try_join_all(self.webhooks.into_iter().map(Background::stop)).await?;
        futures_util::future::try_join_all(self.witnessing.into_iter().map(Background::stop)).await?;
        if let Some(log) = self.app.log.get().cloned() {
            // Its thread may be reading, or wait for its key's agent.
            tokio::task::spawn_blocking(move || log.stop()).await.map_err(io::Error::other)?;
        }
        self.app.catalogue.stop();
        self.catalogue.stop().await?;
        self.disk.stop().await?;
        self.due.stop().await?;
        for part in [self.following, self.admin].into_iter().flatten() {
            part.stop().await?;
        }
        match self.metrics {
            Some(metrics) => metrics.stop().await,
            None => Ok(()),
        }
    }
}

impl Background {
    fn start<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(watch::Receiver<bool>) -> F) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self { stop, working: tokio::spawn(work(stopped)) }
    }

    async fn stop(self) -> io::Result<()> {
        self.stop.send_replace(true);
        self.working.await.map_err(io::Error::other)
    }
}

/// Opens the data directory and serves it. Must be called inside a Tokio runtime.
pub async fn start(settings: Settings, clock: Clock) -> Result<Running, StartError> {
    // Commits and answers cannot have such dates. A clock that goes wrong later does no harm.
    http_date().ok_or(StartError::Clock)?;
    let tls = settings.tls.map(Tls::read).transpose()?.map(Arc::new);
    let data_dir = DataDir::lock(&settings.data_dir)?;
    let node = match settings.node {
        Some(node) => Some(UnstartedNode::prepare(node, &data_dir.node_name()).await?),
        None => None,
    };
    let database = node.as_ref().map(|node| node.database().clone());
    let role = match &node {
        Some(node) => node.store_role(&clock).map_err(StartError::Threads)?,
        None => StoreRole::Single,
    };
    let opening = OpenSettings {
        author: settings.author,
        clock: clock.clone(),
        budget: settings.limits.storage,
        speaks_for,
        role,
    };
    let witness_dir = data_dir.witness();
    let witness =
        settings.witness.as_ref().map(|witness| witness::open(&witness_dir, witness)).transpose()?;
    let OpenedRole { store, role, webhooks } = match settings.mirror {
        None => open_own(&data_dir, opening, node, settings.webhooks)?,
        Some(mirror) => open_mirror(&data_dir, opening, mirror).await?,
    };
    let log = settings.log.map(|log| transparency::start(&store, &data_dir, database, log)).transpose()?;
    let (log, asked) = log.unzip();
    let policy = log.as_ref().and_then(|log| log.policy());
    let blocks = Blocks::open(data_dir.blocks())?;
    let admin = bind_admin(data_dir.path());
    let fetcher = Fetcher::new(settings.guard.clone(), settings.timeouts, Arc::new(SystemResolver))?;
    let fetcher = fetcher.with_asset_timeout(settings.asset_timeout);
    let limits = settings.limits;
    let release_limits =
        ReleaseLimits { assets: limits.assets, asset_bytes: limits.asset_bytes, total_time: RELEASE_TIME };
    let connections = Arc::new(Connections::new(settings.connections));
    // Listeners keep their connections. The others are for clients that come and go.
    let listeners = limits.event_listeners.min(connections.limits.total / 2);
    let app = App::new(AppParts {
        role,
        log: LogSlot::of(log),
        cosigning: policy.as_ref().map(CosigningStats::of).unwrap_or_default(),
        witness,
        catalogue: Arc::new(store.catalogue()),
        questions: Renderings::default(),
        events: Arc::new(Audience::start(store.log(), listeners)),
        store: Arc::new(HeldStore { store, data_dir }),
        upstream: Upstream {
            forges: settings.forges,
            file_servers: settings.guard.file_servers,
            turns: FetchTurns::default(),
            releases: Releases::default(),
            fetcher: fetcher.clone(),
            signers_file_bytes: limits.signers_file_bytes,
            release_limits,
        },
        large_bodies: SharedPlaces::new(LARGE_BODIES),
        renderings: Renderings::default(),
        sending: Sending::default(),
        is_tls: tls.is_some(),
        limits,
        limiter: settings.rates.map(Limiter::new).map(Arc::new),
        connections,
        requests: Arc::default(),
        followers: Arc::default(),
        webhooks: webhooks.stats(),
        reference: &REFERENCE,
        blocks,
        started: Instant::now(),
        is_stopping: watch::Sender::new(false),
        clock: clock.clone(),
    });
    let bound = bind(settings.listen)?;
    let address = bound.address;
    let metrics = settings.metrics_listen.map(bind).transpose()?;
    let due = DueRotations::of(&app);
    let main = serve_main(&app, bound.listener, tls.clone(), settings.trusted_proxies, &due)?;
    let metrics_address = metrics.as_ref().map(|bound| bound.address);
    let metrics = metrics.map(|bound| serve_metrics(&app, bound.listener));
    let webhooks = webhooks.work(&app.store, &clock, &fetcher).map(Background::start).collect();
    let catalogue = catalogue::follow(&app.catalogue).map_err(StartError::Threads)?;
    let disk = disk_space::watch(settings.data_dir).map_err(StartError::Threads)?;
    let rotations = due.clone();
    let due = due::watch(due, Handle::current()).map_err(StartError::Threads)?;
    let following = start_following(&app, clock)?;
    let watching = settings.witness.map(|settings| WitnessTask { settings, dir: witness_dir.join("replay") });
    let witnessing = start_witnessing(&app, asked, watching)?;
    let admin = admin.map(|listener| {
        let app = app.clone();
        Background::start(|stopped| admin::serve(listener, app, stopped))
    });
    Ok(Running {
        address,
        metrics_address,
        app,
        tls,
        main,
        metrics,
        webhooks,
        catalogue,
        disk,
        due,
        rotations,
        following,
        witnessing,
        admin,
    })
}

/// What there is to serve, and how this server stands to others.
struct OpenedRole {
    store: Store,
    role: ServerRole,
    webhooks: Webhooks,
}

/// On its own, or as a node.
fn open_own(
    data_dir: &DataDir,
    opening: OpenSettings,
    node: Option<UnstartedNode>,
    webhooks: Vec<Webhook>,
) -> Result<OpenedRole, StartError> {
    mirror::promote(data_dir)?;
    let opened = open_repository(data_dir, opening)?;
    let database = node.as_ref().map(UnstartedNode::database);
    let webhooks = Webhooks::open(webhooks, data_dir, &opened.store, database)?;
    let role = match (node, opened.nonces) {
        (Some(node), _) => ServerRole::Node(node.start()),
        (None, nonces) => {
            ServerRole::Single { nonces: nonces.expect("a server on its own has its own nonces") }
        }
    };
    Ok(OpenedRole { store: opened.store, role, webhooks })
}

async fn open_mirror(
    data_dir: &DataDir,
    opening: OpenSettings,
    mirror: MirrorSettings,
) -> Result<OpenedRole, StartError> {
    let opening = OpenSettings { role: StoreRole::Follower, budget: None, ..opening };
    let (store, state) = mirror::open(data_dir, mirror, opening).await?;
    // The origin sends webhooks.
    let webhooks = Webhooks::open(Vec::new(), data_dir, &store, None)?;
    Ok(OpenedRole { store, role: ServerRole::Mirror(state), webhooks })
}

fn serve_main(
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

/// A node follows the order, and a mirror its origin.
fn start_following(app: &App, clock: Clock) -> Result<Option<Background>, StartError> {
    let store = Arc::clone(&app.store);
    Ok(match &app.role {
        ServerRole::Single { .. } => None,
        ServerRole::Node(node) => Some(Background::start(|stopped| node.follow(store, stopped))),
        ServerRole::Mirror(state) => Some(Background::start(
            mirror::follow(Arc::clone(state), store, clock).map_err(MirrorError::from)?,
        )),
    })
}

/// What a witness needs besides the application.
struct WitnessTask {
    settings: WitnessSettings,
    /// For files that can be deleted.
    dir: PathBuf,
}

/// The tasks between a log and its witnesses, on whichever side this server is.
fn start_witnessing(
    app: &App,
    asked: Option<Vec<AskedWitness>>,
    task: Option<WitnessTask>,
) -> Result<Vec<Background>, StartError> {
    let mut witnessing = Vec::new();
    if let (Some(log), Some(asked)) = (app.log.get(), asked) {
        let (stats, restored) = (app.cosigning.clone(), Restored::of(&app.role, app.now()));
        witnessing.push(Background::start(asking::ask_all(log, asked, stats, restored, app.clock.clone())?));
    }
    if let (Some(witness), Some(task), Some(mirror)) = (&app.witness, task, app.role.mirror()) {
        witnessing.push(Background::start(witness::watch(WatchParts {
            witness: Arc::clone(witness),
            settings: task.settings,
            origin: mirror.origin.clone(),
            store: Arc::clone(&app.store),
            dir: task.dir,
            clock: app.clock.clone(),
        })?));
    }
    // A witness derives the log already, and need not be asked for it.
    if let (ServerRole::Mirror(mirror), None) = (&app.role, &app.witness) {
        witnessing.push(Background::start(mirror::copy_log(CopyParts {
            mirror: Arc::clone(mirror),
            store: Arc::clone(&app.store),
            slot: app.log.clone(),
        })?));
    }
    Ok(witnessing)
}

/// Without it the server works, and its operator has to stop it for changes.
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

fn serve_metrics(app: &App, listener: TcpListener) -> Background {
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

/// A socket, and the address that the system gave it.
struct BoundListener {
    listener: TcpListener,
    address: SocketAddr,
}

fn bind(address: SocketAddr) -> Result<BoundListener, StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = listen::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(BoundListener { listener, address })
}
