//! The running server: what its handlers share, and its start and end.

use std::{io, net::SocketAddr, sync::Arc};

use countersign_core::{
    decide::assets::Release,
    json::ParseError,
    repository::{FORMAT, RepositoryMarker},
    snapshot::Change,
    time::Timestamp,
};
use countersign_forge::{
    fetch::{Fetcher, SetupError},
    file_server::FileServers,
    forges::{FetchedSigners, Forges, ReleaseSource, SignersSource},
    resolver::SystemResolver,
};
use thiserror::Error;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    task::JoinHandle,
};
use url::Url;

use crate::{
    clock::Clock,
    config::{Limits, Settings},
    data_dir::{DataDir, DataDirError},
    error::ApiError,
    listen,
    nonces::{self, NonceError, Nonces},
    releases::{ReleaseLimits, Releases},
    router,
    store::{self, Author, OpenError, Repository, Store, StoreError},
};

const MAX_FETCHES: usize = 64;

/// What every handler has. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    nonces: Nonces,
    fetcher: Fetcher,
    /// Strangers can make us fetch; this is how often at a time.
    fetches: Semaphore,
    file_servers: FileServers,
    forges: Forges,
    releases: Releases,
    limits: Limits,
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

    pub async fn fetch_signers(&self, source: &SignersSource) -> Result<FetchedSigners, ApiError> {
        let _permit = self.0.fetches.try_acquire().map_err(|_| ApiError::busy())?;
        Ok(self.0.fetcher.fetch_signers(source, self.0.limits.signers_file_bytes).await?)
    }

    /// A release with the digests of all its assets.
    pub async fn download_release(&self, source: ReleaseSource) -> Result<Arc<Release>, ApiError> {
        let Limits { assets, asset_bytes, release_time, .. } = self.0.limits;
        let limits = ReleaseLimits { assets, asset_bytes, total_time: release_time };
        Ok(self.0.releases.download(&self.0.fetcher, source, limits).await?)
    }

    /// Content that must be there.
    pub async fn fetch(
        &self,
        url: &Url,
        limits: countersign_forge::fetch::Limits,
    ) -> Result<Vec<u8>, ApiError> {
        let _permit = self.0.fetches.try_acquire().map_err(|_| ApiError::busy())?;
        self.0.fetcher.get(url, limits).await?.ok_or_else(|| ApiError::missing_upstream(url))
    }
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Repository(#[from] OpenError),
    #[error("the repository cannot be used: {error}")]
    Format { error: ParseError },
    #[error("the store of used nonces cannot be opened")]
    Nonces(#[from] NonceError),
    #[error("the repository cannot be written")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Fetch(#[from] SetupError),
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
}

/// A server that accepts requests.
#[derive(Debug)]
pub struct Running {
    pub address: SocketAddr,
    app: App,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Running {
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Accepts no more requests, finishes those under way, and lets go of the data directory.
    pub async fn stop(self) -> io::Result<()> {
        self.stop.send_replace(true);
        self.serving.await.map_err(io::Error::other)
    }
}

/// Opens the data directory and serves it. Must be called inside a Tokio runtime.
pub async fn start(settings: Settings, clock: Clock) -> Result<Running, StartError> {
    let data_dir = DataDir::lock(&settings.data_dir)?;
    let opened = open_repository(&data_dir, settings.author, &clock)?;
    let fetcher = Fetcher::new(settings.guard.clone(), settings.timeouts, Arc::new(SystemResolver))?;
    let fetcher = fetcher.with_asset_timeout(settings.asset_timeout);
    let app = App(Arc::new(Shared {
        store: opened.store,
        nonces: opened.nonces,
        fetcher,
        fetches: Semaphore::new(MAX_FETCHES),
        file_servers: settings.guard.file_servers,
        forges: settings.forges,
        releases: Releases::default(),
        limits: settings.limits,
        clock,
        _data_dir: data_dir,
    }));
    let listener = TcpListener::bind(settings.listen).await;
    let listener = listener.map_err(|source| StartError::Listen { address: settings.listen, source })?;
    let address =
        listener.local_addr().map_err(|source| StartError::Listen { address: settings.listen, source })?;
    let (stop, stopped) = watch::channel(false);
    let reader = app.clone();
    let read = move |parts: (&_, &_, &_)| router::answer_read(&reader, parts);
    let serving = tokio::spawn(listen::serve(listener, router::build(app.clone()), read, stopped));
    Ok(Running { address, app, stop, serving })
}

#[derive(Debug)]
pub struct Opened {
    pub store: Store,
    pub nonces: Nonces,
}

/// Opens the repository and the nonces beside it, and makes both where there are none.
pub fn open_repository(data_dir: &DataDir, author: Author, clock: &Clock) -> Result<Opened, StartError> {
    let repository = Repository::open(&data_dir.repository())?;
    if let Some(marker) = repository.marker()? {
        RepositoryMarker::parse(&marker).map_err(|error| StartError::Format { error })?;
    }
    let now = clock.now();
    // Before the first commit, so that a crash between the two does not look like a restored clone (D38).
    let state =
        if repository.is_unborn() { nonces::Repository::Unborn } else { nonces::Repository::HasCommits };
    let nonces = Nonces::open(&data_dir.nonces(), state, clock.clone())?;
    let mut initial = Change::new("Create the repository\n");
    let marker = RepositoryMarker { format: FORMAT, created_at: now.to_whole_seconds() };
    initial.write(RepositoryMarker::path(), marker.write());
    let options = store::Options { author, clock: clock.clone(), initial };
    Ok(Opened { store: Store::start(repository, options)?, nonces })
}
