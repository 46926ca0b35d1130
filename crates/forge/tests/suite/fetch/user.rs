//! What a user fetches at their own machine, over real sockets.

use std::{sync::mpsc, time::Duration};

use countersign_core::documents::signers::SourceKind;
use countersign_forge::fetch::{Download, FetchError, FetchLimits, Fetcher, Redirects, Timeouts, Wait};
use countersign_forge::{forges::locate_claimed, https::https_client};
use url::Url;

use crate::support::{PATIENT, Routes, Server, reply, run_again};

fn fetcher() -> Fetcher {
    Fetcher::for_user(PATIENT).unwrap()
}

async fn open(url: &str, max_bytes: Option<u64>) -> Result<Option<Download>, FetchError> {
    fetcher().open_download(&Url::parse(url).unwrap(), max_bytes).await
}

/// The rest of a download.
async fn read(mut download: Download) -> Result<Vec<u8>, FetchError> {
    let mut content = Vec::new();
    while let Some(chunk) = download.chunk().await? {
        content.extend_from_slice(&chunk);
    }
    Ok(content)
}

async fn read_path(path: &str, max_bytes: Option<u64>) -> Result<Vec<u8>, FetchError> {
    let server = Server::start().await;
    read(open(&server.url(path), max_bytes).await?.unwrap()).await
}

#[tokio::test]
async fn a_download_gives_its_announced_length_and_its_bytes() {
    let server = Server::start().await;
    for (path, length) in [("/ok", Some(5)), ("/chunked", None), ("/to?/ok", Some(5)), ("/count/5", Some(5))]
    {
        let download = open(&server.url(path), None).await.unwrap().unwrap();
        assert_eq!((download.length(), download.is_html()), (length, false), "{path}");
        assert_eq!(read(download).await.unwrap(), b"hello", "{path}");
    }
    assert_eq!(read_path("/empty", Some(0)).await.unwrap(), b"");
    assert_eq!(read_path("/unannounced", None).await.unwrap().len(), 200_000);
}

#[tokio::test]
async fn what_is_not_there_is_absent() {
    let server = Server::start().await;
    for path in ["/missing", "/status/410-Gone", "/to?/missing"] {
        assert!(open(&server.url(path), None).await.unwrap().is_none(), "{path}");
    }
}

#[tokio::test]
async fn a_redirect_may_lead_to_another_server() {
    let (server, other) = (Server::start().await, Server::start().await);
    let url = server.url(&format!("/to?{}", other.url("/ok")));
    assert_eq!(read(open(&url, None).await.unwrap().unwrap()).await.unwrap(), b"hello");
    for target in ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://u:p@127.0.0.1/x"] {
        let error = open(&server.url(&format!("/to?{target}")), None).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused { .. }), "{target}: {error}");
    }
    let error = open(&server.url("/count/6"), None).await.unwrap_err();
    assert!(error.to_string().contains("more than 5 redirects"), "{error}");
}

#[tokio::test]
async fn what_is_too_large_is_refused_early_or_while_it_streams() {
    let server = Server::start().await;
    let error = open(&server.url("/announced"), Some(999_998)).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { max_bytes: 999_998, .. }), "{error}");
    for path in ["/unannounced", "/chunked"] {
        let error = read_path(path, Some(4)).await.unwrap_err();
        assert!(matches!(error, FetchError::TooLarge { max_bytes: 4, .. }), "{path}: {error}");
    }
    assert_eq!(read_path("/chunked", Some(5)).await.unwrap(), b"hello");
    assert_eq!(read_path("/unannounced", Some(200_000)).await.unwrap().len(), 200_000);
}

#[tokio::test]
async fn a_body_that_is_not_the_whole_file_is_an_error() {
    for path in ["/short", "/short-chunked", "/gzip"] {
        let error = read_path(path, None).await.unwrap_err();
        assert!(matches!(error, FetchError::Broken { .. }), "{path}: {error}");
    }
    let error = read_path("/status/206-Part", None).await.unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 206, .. }), "{error}");
}

/// While this lives, time passes only where a test lets it pass: tokio's paused clock stands still during blocking
/// work.
struct HeldClock {
    _ends_the_work: mpsc::Sender<()>,
}

impl HeldClock {
    fn hold() -> Self {
        tokio::time::pause();
        let (sender, receiver) = mpsc::channel();
        tokio::task::spawn_blocking(move || receiver.recv());
        Self { _ends_the_work: sender }
    }
}

/// The result of work that must end when this much time has passed after an event.
async fn ends_after<T>(event: impl Future, wait: Duration, work: impl Future<Output = T>) -> T {
    let pass = async {
        event.await;
        tokio::time::advance(wait + Duration::from_millis(1)).await;
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        // The work begins to wait before any time passes.
        biased;
        result = work => result,
        () = pass => panic!("it still waits after {wait:?}"),
    }
}

#[tokio::test]
async fn only_waiting_for_bytes_has_an_end() {
    let _clock = HeldClock::hold();
    let short = Duration::from_millis(200);
    let server = Server::start().await;
    let url = |path| Url::parse(&server.url(path)).unwrap();
    let timeouts = Timeouts { connect: Duration::from_secs(1), idle: short, total: short, ..PATIENT };
    let fetcher = Fetcher::for_user(timeouts).unwrap();
    let silent = url("/silent");
    let opening = fetcher.open_download(&silent, None);
    let error = ends_after(server.arrival(), timeouts.connect + short, opening).await.unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { wait: Wait::Idle(_), .. }), "{error}");

    let mut download = fetcher.open_download(&url("/stall"), None).await.unwrap().unwrap();
    assert_eq!(download.chunk().await.unwrap().unwrap(), "hello");
    let error = ends_after(async {}, short, download.chunk()).await.unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { wait: Wait::Idle(_), .. }), "{error}");

    // Longer than any of the three, but never without bytes for long.
    let mut drip = fetcher.open_download(&url("/on-demand"), None).await.unwrap().unwrap();
    for _ in 0..30 {
        let nearly_too_late = async {
            tokio::time::advance(short * 9 / 10).await;
            server.send_byte();
        };
        let (chunk, ()) = tokio::join!(drip.chunk(), nearly_too_late);
        assert!(chunk.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_reader_that_pauses_finds_the_download_where_it_left_it() {
    let _clock = HeldClock::hold();
    let server = Server::start().await;
    let timeouts = Timeouts { idle: Duration::from_millis(300), ..PATIENT };
    let url = Url::parse(&server.url("/on-demand")).unwrap();
    let mut download = Fetcher::for_user(timeouts).unwrap().open_download(&url, None).await.unwrap().unwrap();
    for _ in 0..2 {
        server.send_byte();
        assert!(download.chunk().await.unwrap().is_some());
        server.send_byte();
        tokio::time::advance(timeouts.idle * 2).await;
        assert!(download.chunk().await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_web_page_is_told_from_a_file() {
    let server = Server::start_with(|_| {
        Routes::from([(
            "/login".into(),
            reply("200 OK", "Content-Type: text/html; charset=utf-8\r\n", "<p>"),
        )])
    })
    .await;
    assert!(open(&server.url("/login"), None).await.unwrap().unwrap().is_html());
}

#[tokio::test]
async fn a_message_names_no_secret_of_a_redirect() {
    let (server, other) = (Server::start().await, Server::start().await);
    let url = server.url(&format!("/to?{}", other.url("/short?sig=geheim")));
    let download = open(&url, None).await.unwrap().unwrap();
    assert!(!format!("{download:?}").contains("geheim"));
    let message = read(download).await.unwrap_err().to_string();
    assert!(message.contains("/short?…") && !message.contains("geheim"), "{message}");
}

#[tokio::test]
async fn a_claimed_signers_file_is_fetched_within_its_origin() {
    let other = Server::start().await;
    let server = Server::start_with(|_| {
        let location = format!("Location: {}\r\n", other.url("/ok"));
        Routes::from([
            ("/acme/svc.signers.json".into(), reply("200 OK", "", "signers")),
            ("/gone/svc.signers.json".into(), reply("302 Found", &location, "")),
            ("/acme/app/raw/branch/main/svc.signers.json".into(), reply("200 OK", "", "branch")),
        ])
    })
    .await;
    let fetch = async |kind, path: &str| {
        let source = locate_claimed(&server.url(path), kind).unwrap();
        fetcher().fetch_signers(&source, 100).await.map(|fetched| fetched.bytes)
    };
    assert_eq!(fetch(SourceKind::FileServer, "/acme/svc.signers.json").await.unwrap(), b"signers");
    let page = "/acme/app/src/branch/main/svc.signers.json";
    assert_eq!(fetch(SourceKind::Forgejo, page).await.unwrap(), b"branch");
    let error = fetch(SourceKind::FileServer, "/gone/svc.signers.json").await.unwrap_err();
    assert!(error.to_string().contains("leaves the scheme, host and port"), "{error}");
    assert!(other.requests().is_empty());
}

/// Runs itself again, in a process with a proxy in its environment, which alone knows the name that is read there.
#[tokio::test]
async fn the_users_proxy_is_used() {
    const INSIDE: &str = "COUNTERSIGN_TEST_BEHIND_A_PROXY";
    if std::env::var_os(INSIDE).is_some() {
        let url = Url::parse("http://files.invalid/x").unwrap();
        let limits = FetchLimits { max_bytes: 100, redirects: Redirects::SameOrigin };
        assert_eq!(fetcher().get(&url, limits).await.unwrap().unwrap(), b"proxied");
        return;
    }
    let proxy = Server::start_with(|_| {
        Routes::from([("http://files.invalid/x".into(), reply("200 OK", "", "proxied"))])
    })
    .await;
    let others = ["HTTP_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD"];
    let url = proxy.url("");
    tokio::task::spawn_blocking(move || {
        let own = [(INSIDE, Some("1")), ("http_proxy", Some(&*url))];
        run_again(
            "fetch::user::the_users_proxy_is_used",
            &[&own[..], &others.map(|name| (name, None))].concat(),
        );
    })
    .await
    .unwrap();
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn a_client_with_settings_of_its_own_is_set_up_alike() {
    let server = Server::start().await;
    let client = https_client(|builder| builder.no_proxy().timeout(Duration::from_secs(20))).unwrap();
    let body = client.get(server.url("/ok")).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(&body[..], b"hello");
    assert!(server.requests()[0].contains(concat!("countersign/", env!("CARGO_PKG_VERSION"))));
}
