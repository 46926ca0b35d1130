//! The running server: what its handlers share, and its start and end.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use countersign_core::{
    rules::decide::assets::Release,
    values::{shown::shown_text, time::Timestamp},
};
use countersign_forge::{
    fetch::{FetchError, Fetcher, SetupError, Wait},
    file_server::FileServers,
    forges::{FetchedSigners, Forges, ReleaseSource, SignersSource},
    resolver::SystemResolver,
};
use countersign_store::{
    Store,
    audit::replay::MAX_FETCH,
    clock::Clock,
    data_dir::{DataDir, DataDirError},
    nonces::Nonces,
    open::{OpenDataError, open_repository},
};
use thiserror::Error;
use tokio::{net::TcpListener, runtime::Handle, sync::watch, task::JoinHandle};
use url::Url;

use crate::{
    auth::Authenticated,
    config::{Limits, Settings},
    date::http_date,
    error::ApiError,
    events::Events,
    fetching::{FetchKind, FetchOutcome, Fetching, Turn},
    health::NotReady,
    limits::{
        Limiter,
        places::{Claimant, MinimumPace, PlaceRules, SharedPlaces},
    },
    listen::{self, ConnectionLimits, Connections, Lanes, Service},
    metrics::Requests,
    proxies::TrustedProxies,
    releases::{DownloadError, ReleaseLimits, Releases},
    router,
    sending::Sending,
    tls::{Tls, TlsError},
    web::Renderings,
    webhooks::{ProgressError, WebhookStats, Webhooks},
};

/// Larger bodies that are received at the same time.
const MAX_LARGE_BODIES: usize = 32;
/// The server knows the sender only when the whole body is there, so addresses share them, and bodies have a minimum pace.
const LARGE_BODIES: PlaceRules = PlaceRules {
    total: MAX_LARGE_BODIES,
    share: MAX_LARGE_BODIES / 2,
    strangers: MAX_LARGE_BODIES,
    waiting: 64,
    max_wait: Duration::from_secs(1),
    grace: Some(Duration::from_millis(500)),
    pace: Some(MinimumPace { bytes_per_second: 16 * 1024, after: Duration::from_secs(5) }),
};
/// Whoever reads metrics needs one.
const METRICS_CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 32, per_address: None };

/// What every handler has. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    nonces: Nonces,
    fetcher: Fetcher,
    fetching: Fetching,
    large_bodies: Arc<SharedPlaces>,
    file_servers: FileServers,
    forges: Forges,
    releases: Releases,
    renderings: Renderings,
    sending: Sending,
    is_tls: bool,
    limits: Limits,
    limiter: Option<Arc<Limiter>>,
    connections: Arc<Connections>,
    requests: Arc<Requests>,
    events: Arc<Events>,
    webhooks: Vec<Arc<WebhookStats>>,
    is_stopping: watch::Sender<bool>,
    clock: Clock,
    /// Dropped last: the directory stays ours until nobody writes to it any more.
    _data_dir: DataDir,
}

impl App {
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn nonces(&self) -> &Nonces {
        &self.0.nonces
    }

    pub fn file_servers(&self) -> &FileServers {
        &self.0.file_servers
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    pub fn forges(&self) -> &Forges {
        &self.0.forges
    }

    pub fn limiter(&self) -> Option<&Limiter> {
        self.0.limiter.as_deref()
    }

    pub fn connections(&self) -> &Connections {
        &self.0.connections
    }

    pub fn requests(&self) -> &Requests {
        &self.0.requests
    }

    pub fn webhooks(&self) -> &[Arc<WebhookStats>] {
        &self.0.webhooks
    }

    pub fn fetching(&self) -> &Fetching {
        &self.0.fetching
    }

    /// For bodies that are not small. Their senders are not proved yet.
    pub fn large_bodies(&self) -> &Arc<SharedPlaces> {
        &self.0.large_bodies
    }

    pub fn releases(&self) -> &Releases {
        &self.0.releases
    }

    pub fn renderings(&self) -> &Renderings {
        &self.0.renderings
    }

    pub fn sending(&self) -> &Sending {
        &self.0.sending
    }

    /// Whether connections are encrypted by ourselves.
    pub fn is_tls(&self) -> bool {
        self.0.is_tls
    }

    pub fn events(&self) -> &Arc<Events> {
        &self.0.events
    }

    /// Tells when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.0.is_stopping.subscribe()
    }

    /// Whether changes can be accepted, as far as is known.
    pub fn readiness(&self) -> Result<(), NotReady> {
        let now = Instant::now();
        if *self.0.is_stopping.borrow() {
            Err(NotReady::Stopping)
        } else if self.0.store.stats().is_failing(now) {
            Err(NotReady::Store)
        } else if self.0.nonces.stats().is_failing(now) {
            Err(NotReady::Nonces)
        } else {
            Ok(())
        }
    }

    /// For a request that makes us fetch: its turn to do so.
    pub async fn begin_fetching(
        &self,
        kind: FetchKind,
        request: &Authenticated,
        claimant: Claimant,
    ) -> Result<Turn, ApiError> {
        let share = request.share_fetching()?;
        request.charge_fetch()?;
        self.0.fetching.begin(kind, claimant, share).await.ok_or_else(ApiError::busy)
    }

    pub async fn fetch_signers(
        &self,
        turn: &Turn,
        source: &SignersSource,
    ) -> Result<FetchedSigners, ApiError> {
        let fetching = self.0.fetcher.fetch_signers(source, self.0.limits.signers_file_bytes);
        // A forge may be asked several times, and each time has its own limit.
        let fetching = turn.keep(tokio::time::timeout(MAX_FETCH, fetching));
        let fetched = fetching.await?.unwrap_or_else(|_| {
            Err(FetchError::TimedOut { url: shown_text(&source.url), wait: Wait::Total(MAX_FETCH) })
        });
        self.note_fetch(turn.kind, &fetched);
        Ok(fetched?)
    }

    /// A release with the digests of all its assets.
    pub async fn download_release(
        &self,
        request: &Authenticated,
        source: ReleaseSource,
        claimant: Claimant,
    ) -> Result<Arc<Release>, ApiError> {
        // Also of those who wait for a download that another request began: each keeps a connection.
        let _share = request.share_fetching()?;
        request.charge_fetch()?;
        let Limits { assets, asset_bytes, release_time, .. } = self.0.limits;
        let limits = ReleaseLimits { assets, asset_bytes, total_time: release_time };
        let outcome = self.0.releases.download(&self.0.fetcher, source, limits, claimant).await;
        let noted = match &outcome {
            Ok(_) => FetchOutcome::Fetched,
            Err(DownloadError::Busy | DownloadError::GaveWay) => FetchOutcome::Busy,
            Err(DownloadError::Release(error)) if error.is_refused_as_given() => FetchOutcome::Refused,
            Err(DownloadError::Release(_) | DownloadError::TimedOut(_) | DownloadError::Ended) => {
                FetchOutcome::Failed
            }
        };
        self.0.fetching.note(FetchKind::Release, noted);
        Ok(outcome?)
    }

    /// Content that must be there.
    pub async fn fetch(
        &self,
        turn: &Turn,
        url: &Url,
        limits: countersign_forge::fetch::FetchLimits,
    ) -> Result<Vec<u8>, ApiError> {
        let fetched = turn.keep(self.0.fetcher.get(url, limits)).await?;
        self.note_fetch(turn.kind, &fetched);
        fetched?.ok_or_else(|| ApiError::missing_upstream(url))
    }

    fn note_fetch<T>(&self, kind: FetchKind, fetched: &Result<T, FetchError>) {
        let outcome = match fetched {
            Ok(_) => FetchOutcome::Fetched,
            Err(error) if error.is_refused_as_given() => FetchOutcome::Refused,
            Err(_) => FetchOutcome::Failed,
        };
        self.0.fetching.note(kind, outcome);
    }
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Data(#[from] OpenDataError),
    #[error(transparent)]
    Fetch(#[from] SetupError),
    #[error(transparent)]
    Webhooks(#[from] ProgressError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the threads that serve connections cannot be started")]
    Threads(#[source] io::Error),
    #[error(
        "this machine's clock is before 1970, or after the year 9999: set it, and start the server again"
    )]
    Clock,
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
}

/// A server that accepts requests.
#[derive(Debug)]
pub struct Running {
    pub address: SocketAddr,
    pub metrics_address: Option<SocketAddr>,
    app: App,
    tls: Option<Arc<Tls>>,
    main: Background,
    metrics: Option<Background>,
    webhooks: Vec<Background>,
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

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads certificate and key again; false if there are none.
    pub fn reload_certificate(&self) -> Result<bool, TlsError> {
        self.tls.as_ref().map_or(Ok(false), |tls| tls.reload().map(|()| true))
    }

    /// Accepts no more requests, finishes those under way, and lets go of the data directory. Whoever reads metrics is
    /// answered until then.
    pub async fn stop(self) -> io::Result<()> {
        self.app.0.is_stopping.send_replace(true);
        self.main.stop().await?;
        futures_util::future::try_join_all(self.webhooks.into_iter().map(Background::stop)).await?;
        match self.metrics {
            Some(metrics) => metrics.stop().await,
            None => Ok(()),
        }
    }
}

impl Background {
    async fn stop(self) -> io::Result<()> {
        self.stop.send_replace(true);
        self.working.await.map_err(io::Error::other)
    }
}

/// Opens the data directory and serves it. Must be called inside a Tokio runtime.
pub async fn start(settings: Settings, clock: Clock) -> Result<Running, StartError> {
    // Commits have no such times, and answers no such dates. Later it does no harm.
    http_date().ok_or(StartError::Clock)?;
    let tls = settings.tls.map(Tls::read).transpose()?.map(Arc::new);
    let data_dir = DataDir::lock(&settings.data_dir)?;
    let opened = open_repository(&data_dir, settings.author, &clock, settings.limits.storage)?;
    let fetcher = Fetcher::new(settings.guard.clone(), settings.timeouts, Arc::new(SystemResolver))?;
    let fetcher = fetcher.with_asset_timeout(settings.asset_timeout);
    let connections = Arc::new(Connections::new(settings.connections));
    // Listeners keep their connections. The others are for whoever comes and goes.
    let listeners = settings.limits.event_listeners.min(connections.limits().total / 2);
    let events = Arc::new(Events::start(opened.store.log(), listeners));
    let webhooks = Webhooks::open(settings.webhooks, &data_dir, &opened.store)?;
    let app = App(Arc::new(Shared {
        store: opened.store,
        nonces: opened.nonces,
        fetcher,
        fetching: Fetching::default(),
        large_bodies: SharedPlaces::new(LARGE_BODIES),
        file_servers: settings.guard.file_servers,
        forges: settings.forges,
        releases: Releases::default(),
        renderings: Renderings::default(),
        sending: Sending::default(),
        is_tls: tls.is_some(),
        limits: settings.limits,
        limiter: settings.rates.map(Limiter::new).map(Arc::new),
        connections,
        requests: Arc::default(),
        events,
        webhooks: webhooks.stats(),
        is_stopping: watch::Sender::new(false),
        clock,
        _data_dir: data_dir,
    }));
    let (listener, address) = bind(settings.listen)?;
    let metrics = settings.metrics_listen.map(bind).transpose()?;
    let reader = app.clone();
    let service = Service {
        router: router::build(app.clone()),
        read: move |parts: (&_, &_, &_)| router::answer_read(&reader, parts),
        connections: Arc::clone(&app.0.connections),
        requests: Arc::clone(&app.0.requests),
        limiter: app.0.limiter.clone(),
        proxies: Arc::new(settings.trusted_proxies),
        tls: tls.clone(),
        workers: Handle::current(),
    };
    let lanes = Lanes::start().map_err(StartError::Threads)?;
    let main = Background::start(|stopped| listen::serve(listener, service, lanes, stopped));
    let (metrics, metrics_address) = metrics.map(|bound| serve_metrics(&app, bound)).unzip();
    let webhooks = webhooks.work(&app, &app.0.fetcher).map(Background::start).collect();
    Ok(Running { address, metrics_address, app, tls, main, metrics, webhooks })
}

fn serve_metrics(app: &App, (listener, address): (TcpListener, SocketAddr)) -> (Background, SocketAddr) {
    let service = Service {
        router: router::build_metrics(app.clone()),
        read: |_: (&_, &_, &_)| None,
        connections: Arc::new(Connections::new(METRICS_CONNECTIONS)),
        // Not mixed with those that are worth knowing.
        requests: Arc::default(),
        limiter: None,
        proxies: Arc::new(TrustedProxies::default()),
        tls: None,
        workers: Handle::current(),
    };
    (Background::start(|stopped| listen::serve(listener, service, Lanes::shared(), stopped)), address)
}

impl Background {
    fn start<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(watch::Receiver<bool>) -> F) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self { stop, working: tokio::spawn(work(stopped)) }
    }
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound =
        listen::bind(address).and_then(|listener| listener.local_addr().map(|bound| (listener, bound)));
    bound.map_err(|source| StartError::Listen { address, source })
}
