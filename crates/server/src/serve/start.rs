//! Start and end of the server: the one place that knows all its parts.

pub(crate) mod opening;
pub(crate) mod serving;

use std::{io, net::SocketAddr, sync::Arc, sync::LazyLock, time::Duration, time::Instant};

use countersign_forge::{fetch::Fetcher, guard::SystemResolver};
use countersign_store::machine::clock::Clock;
use tokio::{runtime::Handle, sync::watch};

use crate::api::{openapi::Reference, state, state::App, state::AppParts};
use crate::follow::background::{Background, LogSlot, Rounds};
use crate::http::sending::{Sending, few_turns};
use crate::http::upstream::{FetchTurns, Upstream, releases::ReleaseLimits, releases::Releases};
use crate::limits::semaphore::{FairSemaphore, MinimumPace, SemaphoreRules};
use crate::limits::{Limiter, connections::Connections};
use crate::operate::{config::Settings, disk_space, tls::Tls, tls::TlsError};
pub use crate::serve::start::opening::StartError;
use crate::serve::start::opening::{Opened, OpenedState};
use crate::serve::start::serving::{
    bind, bind_admin, serve_admin, serve_main, serve_metrics, start_following, start_witnessing,
};
use crate::serve::{answer::http_date, due, due::DueRotations, table};
use crate::{events::Audience, events::webhooks::settings::WebhookStats, nodes::asking::CosigningStats};

/// Large bodies that are received at the same time.
const MAX_LARGE_BODIES: usize = 32;
/// The server does not know the sender before the whole body is there. So addresses share the places, and bodies have a
/// minimum pace.
const LARGE_BODIES: SemaphoreRules = SemaphoreRules {
    share: MAX_LARGE_BODIES / 2,
    waiting: 64,
    max_wait: Duration::from_secs(1),
    grace: Some(Duration::from_millis(500)),
    pace: Some(MinimumPace { bytes_per_second: 16 * 1024, after: Duration::from_secs(5) }),
    ..SemaphoreRules::of(MAX_LARGE_BODIES)
};
/// How many visitors can wait for a page or an answer of the catalogue, and how long. If many come from one address,
/// others go first.
const MAX_VISITORS: usize = 256;
const VISITOR_WAIT: Duration = Duration::from_secs(5);
/// Enough for any release that signers would wait for.
const RELEASE_TIME: Duration = Duration::from_secs(6 * 60 * 60);
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

/// Opens the data directory and serves it. Must be called inside a Tokio runtime.
pub async fn start(settings: Settings, clock: Clock) -> Result<Running, StartError> {
    // Commits and answers cannot have such dates. A clock that goes wrong later does no harm.
    http_date().ok_or(StartError::Clock)?;
    let tls = settings.tls.clone().map(Tls::read).transpose()?.map(Arc::new);
    let Opened { state, webhooks, asked } = opening::open(&settings, &clock).await?;
    let admin = bind_admin(state.store.data_dir.path());
    let app = build_app(&settings, &clock, state, webhooks.stats(), tls.is_some())?;
    let main = bind(settings.listen)?;
    let metrics = settings.metrics_listen.map(bind).transpose()?;
    let rotations = DueRotations::of(&app);
    Ok(Running {
        address: main.address,
        metrics_address: metrics.as_ref().map(|metrics| metrics.address),
        main: serve_main(&app, main.listener, tls.clone(), settings.trusted_proxies, &rotations)?,
        metrics: metrics.map(|metrics| serve_metrics(&app, metrics.listener)),
        webhooks: webhooks.work(&app.store, &clock, &app.upstream.fetcher).map(Background::start).collect(),
        catalogue: state::follow(&app.catalogue).map_err(StartError::Threads)?,
        disk: disk_space::watch(settings.data_dir).map_err(StartError::Threads)?,
        due: due::watch(rotations.clone(), Handle::current()).map_err(StartError::Threads)?,
        following: start_following(&app, clock)?,
        witnessing: start_witnessing(&app, asked, settings.witness)?,
        admin: admin.map(|listener| serve_admin(&app, listener)),
        rotations,
        tls,
        app,
    })
}

fn build_app(
    settings: &Settings,
    clock: &Clock,
    state: OpenedState,
    webhooks: Vec<Arc<WebhookStats>>,
    is_tls: bool,
) -> Result<App, StartError> {
    let OpenedState { blocks, log, role, store, witness } = state;
    let upstream = build_upstream(settings)?;
    let limits = settings.limits.clone();
    let policy = log.as_ref().and_then(|log| log.policy());
    let connections = Arc::new(Connections::new(settings.connections));
    // Listeners keep their connections. The others are for clients that come and go.
    let listeners = limits.event_listeners.min(connections.limits.total / 2);
    Ok(App::new(AppParts {
        role,
        log: LogSlot::of(log),
        cosigning: policy.as_ref().map(CosigningStats::of).unwrap_or_default(),
        witness,
        catalogue: Arc::new(store.catalogue()),
        questions: few_turns(4, MAX_VISITORS, VISITOR_WAIT),
        events: Arc::new(Audience::start(store.recent_commits(), listeners)),
        store: Arc::new(store),
        upstream,
        large_bodies: FairSemaphore::new(LARGE_BODIES),
        renderings: few_turns(4, MAX_VISITORS, VISITOR_WAIT),
        sending: Sending::default(),
        is_tls,
        limits,
        limiter: settings.rates.map(Limiter::new).map(Arc::new),
        connections,
        requests: Arc::default(),
        followers: Arc::default(),
        webhooks,
        reference: &REFERENCE,
        blocks,
        started: Instant::now(),
        is_stopping: watch::Sender::new(false),
        clock: clock.clone(),
    }))
}

fn build_upstream(settings: &Settings) -> Result<Upstream, StartError> {
    let limits = &settings.limits;
    let fetcher = Fetcher::new(settings.guard.clone(), settings.timeouts, Arc::new(SystemResolver))?;
    Ok(Upstream {
        forges: settings.forges.clone(),
        file_servers: settings.guard.file_servers.clone(),
        turns: FetchTurns::default(),
        releases: Releases::default(),
        fetcher: fetcher.with_asset_timeout(settings.asset_timeout),
        signers_file_bytes: limits.signers_file_bytes,
        release_limits: ReleaseLimits {
            assets: limits.assets,
            asset_bytes: limits.asset_bytes,
            total_time: RELEASE_TIME,
        },
    })
}
