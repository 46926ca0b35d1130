//! Who waits for a download, and what becomes of it when no one does.

use std::{net::SocketAddr, sync::Arc, sync::atomic::AtomicUsize, sync::atomic::Ordering, time::Duration};

use countersign_core::values::{key::PublicKey, path::RepoPath};
use countersign_forge::forges::{ForgeConfig, ForgeKind, Forges, ReleaseSource};
use countersign_forge::{fetch::Fetcher, fetch::Timeouts, guard::Guard, guard::SystemResolver};
use countersign_server::http::upstream::releases::{DownloadError, DownloadOutcome, ReleaseLimits, Releases};
use countersign_server::limits::semaphore::Claimant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::{net::TcpListener, net::TcpStream, sync::Notify, sync::Semaphore, task::JoinHandle};

const ASSET: &[u8] = b"0123456789";
const LIMITS: ReleaseLimits =
    ReleaseLimits { assets: 10, asset_bytes: 1_000, total_time: Duration::from_secs(60) };

/// A forge whose one asset stops half-way until it is told to go on.
struct Forge {
    address: SocketAddr,
    asset_requests: AtomicUsize,
    /// Gets a permit for each half that was sent.
    half_sent: Semaphore,
    go_on: Notify,
    /// Gets a permit for each asset's connection that the server closed before the end.
    given_up: Semaphore,
}

impl Forge {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let forge = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            asset_requests: AtomicUsize::new(0),
            half_sent: Semaphore::new(0),
            go_on: Notify::new(),
            given_up: Semaphore::new(0),
        });
        let own = Arc::clone(&forge);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&own).answer(stream));
            }
        });
        forge
    }

    async fn answer(self: Arc<Self>, mut stream: TcpStream) {
        let mut request = vec![0; 4_096];
        let length = stream.read(&mut request).await.unwrap_or(0);
        if !String::from_utf8_lossy(&request[..length]).contains("/asset") {
            let text = String::from_utf8_lossy(&request[..length]).into_owned();
            let tag = text.split(' ').nth(1).and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            let body = format!(
                r#"{{"tag_name":"{tag}","draft":false,"published_at":"2026-01-01T00:00:00Z","assets":[
                    {{"name":"app.zip","size":10,"browser_download_url":"http://{}/asset"}}]}}"#,
                self.address
            );
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n";
            let reply = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(reply.as_bytes()).await;
            return;
        }
        self.asset_requests.fetch_add(1, Ordering::SeqCst);
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 10\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&ASSET[..5]).await.unwrap();
        self.half_sent.add_permits(1);
        tokio::select! {
            () = self.go_on.notified() => { let _ = stream.write_all(&ASSET[5..]).await; }
            // Nothing more is ever sent to us: this ends when the other side closes.
            _ = stream.read(&mut request) => self.given_up.add_permits(1),
        }
    }

    fn forges(&self) -> Forges {
        let host = self.address.to_string();
        Forges::new(vec![ForgeConfig { host, kind: ForgeKind::Forgejo, api: None, raw: None, token: None }])
            .unwrap()
    }

    fn source(&self, tag: &str) -> ReleaseSource {
        let url = format!("http://{}/acme/app/releases/tag/{tag}", self.address);
        self.forges().locate_release(&url).unwrap()
    }

    fn fetcher(&self) -> Fetcher {
        let guard = Guard { allow: self.forges().exceptions(), ..Guard::default() };
        Fetcher::new(guard, Timeouts::default(), Arc::new(SystemResolver)).unwrap()
    }

    /// Begins to download a release, for a client that can leave.
    fn begin(&self, releases: &Releases, tag: &str, claimant: Claimant) -> JoinHandle<DownloadOutcome> {
        let (fetcher, source, releases) = (self.fetcher(), self.source(tag), releases.clone());
        tokio::spawn(async move { releases.download(&fetcher, source, LIMITS, claimant).await })
    }
}

fn claimant(key: &PublicKey) -> Claimant {
    Claimant::default().with_key(key)
}

fn key(n: u8) -> PublicKey {
    countersign_testing::key(n).public_key()
}

async fn acquire(permits: &Semaphore) {
    permits.acquire().await.unwrap().forget();
}

#[tokio::test]
async fn a_download_that_no_one_waits_for_stops_after_a_while() {
    let forge = Forge::start().await;
    let releases = Releases::kept_for(Duration::from_millis(100));
    let waiter = forge.begin(&releases, "v1", claimant(&key(1)));
    acquire(&forge.half_sent).await;
    waiter.abort();
    acquire(&forge.given_up).await;
    // A later caller begins anew.
    let again = forge.begin(&releases, "v1", claimant(&key(1)));
    acquire(&forge.half_sent).await;
    forge.go_on.notify_one();
    assert_eq!(again.await.unwrap().unwrap().published_files.len(), 1);
    assert_eq!(forge.asset_requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn who_comes_back_in_time_joins_the_download() {
    let forge = Forge::start().await;
    let releases = Releases::default();
    let first = forge.begin(&releases, "v1", claimant(&key(1)));
    acquire(&forge.half_sent).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let (fetcher, source) = (forge.fetcher(), forge.source("v1"));
    let second = releases.download(&fetcher, source, LIMITS, claimant(&key(1)));
    forge.go_on.notify_one();
    let release = second.await.unwrap();
    assert_eq!(release.published_files[0].size, Some(10));
    assert_eq!(forge.asset_requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_result_that_no_one_waited_for_is_given_once() {
    let forge = Forge::start().await;
    let releases = Releases::default();
    for requests in 1..=2 {
        let first = forge.begin(&releases, "v1", claimant(&key(1)));
        acquire(&forge.half_sent).await;
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        forge.go_on.notify_one();
        releases.download(&forge.fetcher(), forge.source("v1"), LIMITS, claimant(&key(1))).await.unwrap();
        assert_eq!(forge.asset_requests.load(Ordering::SeqCst), requests);
    }
}

/// Starts downloads of different releases, whose clients leave, until one is refused: how many there were.
async fn start_until_busy(forge: &Forge, releases: &Releases, key: impl Fn(usize) -> PublicKey) -> usize {
    let mut started = 0;
    loop {
        let caller = key(started);
        let [id, ..] = *caller.as_bytes();
        let mut waiter = forge.begin(releases, &format!("v{started}-{id}"), claimant(&caller));
        tokio::select! {
            refused = &mut waiter => match refused.unwrap().unwrap_err() {
                DownloadError::Busy => return started,
                other => panic!("{other}"),
            },
            () = acquire(&forge.half_sent) => waiter.abort(),
        }
        started += 1;
    }
}

#[tokio::test]
async fn downloads_are_bounded_though_their_clients_leave() {
    let forge = Forge::start().await;
    let started = start_until_busy(&forge, &Releases::default(), |n| key(n as u8)).await;
    assert!((1..=64).contains(&started), "{started}");
}

#[tokio::test]
async fn one_key_leaves_downloads_for_others() {
    let forge = Forge::start().await;
    let releases = Releases::default();
    let own = start_until_busy(&forge, &releases, |_| key(200)).await;
    let others = start_until_busy(&forge, &releases, |n| key(n as u8)).await;
    assert!(own >= 1 && others >= 1, "{own} {others}");
    assert_eq!(releases.permits.held(), own + others);
}

#[tokio::test]
async fn a_result_that_somebody_got_is_not_given_to_those_who_come_later() {
    let forge = Forge::start().await;
    let releases = Releases::default();
    for requests in 1..=2 {
        let download = forge.begin(&releases, "v1", claimant(&key(1)));
        acquire(&forge.half_sent).await;
        forge.go_on.notify_one();
        download.await.unwrap().unwrap();
        assert_eq!(forge.asset_requests.load(Ordering::SeqCst), requests);
    }
}

#[tokio::test]
async fn two_keys_of_one_project_leave_downloads_for_others() {
    let forge = Forge::start().await;
    let releases = Releases::default();
    let start = async |seed: u8, n: u8, owner: &str| {
        let project = RepoPath::parse(&format!("https/example.org/443/{owner}/app")).unwrap();
        let claimant = claimant(&key(seed)).with_project(&project);
        let mut waiter = forge.begin(&releases, &format!("{owner}-{n}"), claimant);
        tokio::select! {
            refused = &mut waiter => Err(refused.unwrap().unwrap_err()),
            () = acquire(&forge.half_sent) => Ok(waiter),
        }
    };
    let mut held = Vec::new();
    for n in 0..4 {
        held.push(start(n % 2, n, "mallory").await);
    }
    assert!(matches!(start(1, 9, "mallory").await, Err(DownloadError::Busy)), "a project has half of them");
    for n in 0..4 {
        held.push(start(2, n, "acme").await);
    }
    assert_eq!(releases.permits.held(), 8);
    assert!(held.into_iter().all(|started| started.is_ok_and(|waiter| !waiter.is_finished())));
}
