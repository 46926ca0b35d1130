//! The real server in this process, with a real store, a clock that the model sets, and a file server beside it.

use std::sync::{Arc, Mutex, atomic::AtomicU64, atomic::Ordering};
use std::{collections::BTreeMap, path::Path};

use axum::{Router, body::Body, body::to_bytes, http};
use countersign_core::{rules::snapshot::Snapshot as _, values::path::RepoPath, values::time::Timestamp};
use countersign_server::operate::config::{GivenSettings, ServiceLimits, Settings};
use countersign_server::serve::{answer::RequestHead, start, start::Running, table};
use countersign_store::machine::clock::Clock;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::{net::TcpListener, net::TcpStream, runtime::Runtime};

use crate::model::{cast::RunBase, request::Request};

/// Keeps the repository small and the clock near its start.
const MAX_RUNS: u32 = 150;
/// The time of the start, 2026-01-01.
const START_NANOS: u64 = 1_767_225_600_000_000_000;

type Published = Arc<Mutex<BTreeMap<String, String>>>;

/// Plays one sequence after the other.
pub struct Server {
    runtime: Runtime,
    clock: Arc<AtomicU64>,
    published: Published,
    port: u16,
    instance: Option<Instance>,
    runs: u32,
}

struct Instance {
    running: Running,
    service: TowerToHyperService<Router>,
    _dir: TempDir,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerAnswer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl ServerAnswer {
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

impl Server {
    pub fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let published = Published::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port on loopback");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        runtime.spawn(serve_files(listener, Arc::clone(&published)));
        let clock = Arc::new(AtomicU64::new(START_NANOS));
        Self { runtime, clock, published, port, instance: None, runs: 0 }
    }

    /// Makes room for one more sequence.
    pub(crate) fn begin_run(&mut self) -> RunBase {
        if self.runs.is_multiple_of(MAX_RUNS) {
            self.stop();
            self.clock.store(START_NANOS, Ordering::Relaxed);
            self.instance = Some(self.open());
        }
        self.runs += 1;
        self.published.lock().expect("no thread panicked with the lock").clear();
        RunBase { port: self.port, run: format!("r{}", self.runs) }
    }

    fn open(&self) -> Instance {
        // Other tests check what a crash leaves on disk. Here each commit should cost little.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }
            .expect("a temporary directory can be made");
        let given = GivenSettings {
            listen: Some("127.0.0.1:0".parse().expect("an address")),
            data_dir: Some(dir.path().join("data")),
            dev: Some(true),
            ..GivenSettings::default()
        };
        let mut settings = Settings::resolve(given).expect("these settings are allowed");
        // All sequences share one host. Caps have their own tests.
        settings.limits = ServiceLimits {
            registrations_per_host: usize::MAX,
            registrations_per_owner: usize::MAX,
            superseded_per_project: usize::MAX,
            rotations_per_day: usize::MAX,
            ..settings.limits
        };
        let nanos = Arc::clone(&self.clock);
        let clock = Clock::new(move || {
            Timestamp::from_unix_nanos(i128::from(nanos.load(Ordering::Relaxed))).expect("a time")
        });
        let running = self.runtime.block_on(start::start(settings, clock)).expect("the server starts");
        let service = TowerToHyperService::new(table::build(running.app().clone()));
        Instance { running, service, _dir: dir }
    }

    fn stop(&mut self) {
        if let Some(Instance { running, service, _dir }) = self.instance.take() {
            drop(service);
            self.runtime.block_on(running.stop()).expect("the server stops");
        }
    }

    pub(crate) fn now(&self) -> i128 {
        i128::from(self.clock.load(Ordering::Relaxed))
    }

    pub(crate) fn set_now(&self, nanos: i128) {
        self.clock.store(nanos.try_into().expect("a time after 1970"), Ordering::Relaxed);
    }

    /// Lets waiting signers take effect, as before the first request after the clock was set.
    pub(crate) fn settle(&self) {
        let instance = self.instance.as_ref().expect("a run has begun");
        self.runtime.block_on(instance.running.settle_due());
    }

    /// Sets what the file server has at a URL; `None`: nothing.
    pub(crate) fn publish(&self, url: &str, content: Option<String>) {
        let path = url.splitn(4, '/').nth(3).expect("a URL with a path").to_owned();
        let mut published = self.published.lock().expect("no thread panicked with the lock");
        match content {
            Some(content) => drop(published.insert(path, content)),
            None => drop(published.remove(&path)),
        }
    }

    pub(crate) fn ask(&self, request: &Request) -> ServerAnswer {
        let instance = self.instance.as_ref().expect("a run has begun");
        let mut http = http::Request::builder()
            .method(request.method)
            .uri(format!("http://localhost/v1/{}", request.target));
        for (name, value) in &request.headers {
            http = http.header(*name, value);
        }
        let http = http.body(Body::from(request.body.clone())).expect("the model makes valid requests");
        let app = instance.running.app();
        self.runtime.block_on(async {
            let head = RequestHead { method: http.method(), uri: http.uri(), headers: http.headers() };
            let response = match table::answer_read(app, head) {
                Some(response) => response,
                None => instance.service.call(http).await.expect("the service always answers"),
            };
            let status = response.status().as_u16();
            let body = to_bytes(response.into_body(), usize::MAX)
                .await
                .expect("an answer in memory has a body")
                .to_vec();
            ServerAnswer { status, body }
        })
    }

    pub(crate) fn files_below(&self, dir: &str) -> BTreeMap<String, String> {
        let instance = self.instance.as_ref().expect("a run has begun");
        let head = instance.running.app().store.head();
        let paths = head
            .files_below(&RepoPath::parse(dir).expect("the model lists valid paths"))
            .expect("the store can be read");
        let content = |path: &RepoPath| {
            let bytes = head.read(path).expect("the store can be read").expect("a listed file is there");
            (path.to_string(), String::from_utf8(bytes.to_vec()).expect("stored files are UTF-8"))
        };
        paths.iter().map(content).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("port", &self.port).field("runs", &self.runs).finish_non_exhaustive()
    }
}

async fn serve_files(listener: TcpListener, published: Published) {
    loop {
        let (stream, _) = listener.accept().await.expect("loopback accepts");
        tokio::spawn(answer_files(stream, Arc::clone(&published)));
    }
}

/// Answers one request after the other until the client closes the connection.
async fn answer_files(mut stream: TcpStream, published: Published) -> std::io::Result<()> {
    let mut received = Vec::new();
    loop {
        while !received.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        }
        let head = String::from_utf8_lossy(&received).into_owned();
        received.clear();
        let path = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        let content = published.lock().expect("no thread panicked with the lock").get(&path).cloned();
        let status = if content.is_some() { "200 OK" } else { "404 Not Found" };
        let content = content.unwrap_or_default();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{content}", content.len());
        stream.write_all(answer.as_bytes()).await?;
    }
}
