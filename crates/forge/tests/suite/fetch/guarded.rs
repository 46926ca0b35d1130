//! Guarded fetching over real sockets of this machine.

use std::{sync::Arc, time::Duration};

use countersign_forge::fetch::{FetchError, FetchLimits, Fetcher, Redirects, Timeouts, Wait};
use countersign_forge::{file_server::FileServers, guard::Guard, guard::SystemResolver};
use url::Url;

use crate::support::{Answers, PATIENT, Server, fetcher, guard, run_again_behind_a_dead_proxy};

/// A fetcher that may reach the test's server by its address.
fn local_fetcher(timeouts: Timeouts) -> Fetcher {
    fetcher(&["127.0.0.1:*"], timeouts, Answers::default())
}

async fn get(fetcher: &Fetcher, url: &str, redirects: Redirects) -> Result<Option<Vec<u8>>, FetchError> {
    fetcher.get(&Url::parse(url).unwrap(), FetchLimits { max_bytes: 100_000, redirects }).await
}

/// Fetches a path of a fresh server, by its address.
async fn get_path(path: &str, redirects: Redirects) -> Result<Option<Vec<u8>>, FetchError> {
    let server = Server::start().await;
    get(&local_fetcher(PATIENT), &server.url(path), redirects).await
}

#[track_caller]
fn assert_hello(result: Result<Option<Vec<u8>>, FetchError>) {
    assert_eq!(result.unwrap().as_deref(), Some(b"hello".as_slice()));
}

/// The text of a refusal that a redirect caused.
#[track_caller]
fn refused_on_redirect(result: Result<Option<Vec<u8>>, FetchError>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, FetchError::Refused { .. }) && !error.is_refused_as_given(), "{error}");
    error.to_string()
}

/// The text of a refusal of the caller's own URL.
#[track_caller]
fn refused_as_given(result: Result<Option<Vec<u8>>, FetchError>) -> String {
    let error = result.unwrap_err();
    assert!(error.is_refused_as_given(), "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_file_is_read_with_plain_headers() {
    let server = Server::start().await;
    assert_hello(get(&local_fetcher(PATIENT), &server.url("/ok?q=1"), Redirects::SameOrigin).await);
    let [head] = server.requests().try_into().unwrap();
    assert!(head.starts_with("GET /ok?q=1 HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
    assert!(head.contains(concat!("user-agent: countersign/", env!("CARGO_PKG_VERSION"), "\r\n")), "{head}");
}

#[tokio::test]
async fn every_framing_of_a_body_is_read_and_what_is_not_there_is_absent() {
    for path in ["/identity", "/chunked", "/count/0"] {
        assert_hello(get_path(path, Redirects::Guarded).await);
    }
    assert_eq!(get_path("/empty", Redirects::Guarded).await.unwrap(), Some(Vec::new()));
    for absent in ["/missing", "/status/410-Gone", "/to?/missing"] {
        assert_eq!(get_path(absent, Redirects::SameOrigin).await.unwrap(), None, "{absent}");
    }
}

#[tokio::test]
async fn any_other_status_is_an_error_that_names_it() {
    for (path, code) in [
        ("/status/500-Oops", 500),
        ("/status/403-No", 403),
        ("/status/204-Empty", 204),
        ("/status/206-Part", 206),
        ("/status/304-Same", 304),
    ] {
        let error = get_path(path, Redirects::Guarded).await.unwrap_err();
        assert!(matches!(error, FetchError::Status { status, .. } if status == code), "{path}: {error}");
        assert!(error.to_string().contains(path), "{error}");
    }
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed() {
    for redirects in [Redirects::SameOrigin, Redirects::Guarded] {
        assert_hello(get_path("/to?/ok", redirects).await);
        assert_hello(get_path("/count/5", redirects).await);
    }
}

#[tokio::test]
async fn a_sixth_redirect_is_refused() {
    let server = Server::start().await;
    let result = get(&local_fetcher(PATIENT), &server.url("/count/6"), Redirects::Guarded).await;
    assert!(refused_on_redirect(result).contains("more than 5 redirects"));
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn a_redirect_to_another_origin_depends_on_what_is_fetched() {
    let (server, other) = (Server::start().await, Server::start().await);
    let url = server.url(&format!("/to?{}", other.url("/ok")));
    let fetcher = local_fetcher(PATIENT);
    let message = refused_on_redirect(get(&fetcher, &url, Redirects::SameOrigin).await);
    assert!(message.contains(&other.url("/ok")), "{message}");
    assert!(other.requests().is_empty());
    assert_hello(get(&fetcher, &url, Redirects::Guarded).await);
}

#[tokio::test]
async fn a_redirect_to_a_place_that_is_not_allowed_is_refused() {
    for target in [
        "http://10.0.0.1/x", "https://10.0.0.1/x", "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.2/x", "http://2130706434/x", "http://[::1]/x", "http://[::ffff:127.0.0.2]/x",
        "https://[64:ff9b::7f00:2]/x", "http://1.1.1.1/x", "file:///etc/passwd", "ftp://127.0.0.1/x",
        "data:,hello", "http://u:p@127.0.0.1/x", "https://[::1%25eth0]/x", "https://private.example/x",
    ] {
        let server = Server::start().await;
        let fetcher =
            fetcher(&["127.0.0.1:*"], PATIENT, Answers::default().with("private.example", &["192.168.0.1"]));
        let result = get(&fetcher, &server.url(&format!("/to?{target}")), Redirects::Guarded).await;
        refused_on_redirect(result);
        assert_eq!(server.requests().len(), 1, "{target}");
    }
}

#[tokio::test]
async fn a_redirect_does_not_repeat_secrets_in_messages() {
    let message = refused_on_redirect(get_path("/to?http://10.0.0.1/x?sig=geheim", Redirects::Guarded).await);
    assert!(message.contains("http://10.0.0.1/x?…") && !message.contains("geheim"), "{message}");
}

#[tokio::test]
async fn a_name_with_only_private_addresses_is_refused_as_given() {
    let answers = Answers::default().with("files.example", &["10.1.2.3", "::1", "fe80::1"]);
    let message = refused_as_given(
        get(&fetcher(&[], PATIENT, answers), "https://files.example/x", Redirects::Guarded).await,
    );
    assert!(message.contains("--allow-fetch files.example") && !message.contains("10.1.2.3"), "{message}");
}

#[tokio::test]
async fn of_mixed_answers_only_the_allowed_addresses_are_connected_to() {
    let server = Server::start().await;
    let answers = Answers::default().with("files.example", &["10.1.2.3", "127.0.0.1", "::1", "1.1.1.1"]);
    let url = format!("http://files.example:{}/ok", server.port);
    assert_hello(get(&fetcher(&["127.0.0.1:*"], PATIENT, answers), &url, Redirects::Guarded).await);
}

#[tokio::test]
async fn a_host_that_is_allowed_by_name_is_reached_at_any_address() {
    let server = Server::start().await;
    let answers =
        || Answers::default().with("git.internal", &["127.0.0.1"]).with("other.internal", &["127.0.0.1"]);
    let url = |name: &str| format!("http://{name}:{}/ok", server.port);
    let fetcher = fetcher(&["git.internal:*"], PATIENT, answers());
    assert_hello(get(&fetcher, &url("git.internal"), Redirects::Guarded).await);
    refused_as_given(get(&fetcher, &url("other.internal"), Redirects::Guarded).await);
    refused_as_given(get(&fetcher, &server.url("/ok"), Redirects::Guarded).await);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_exception_opens_its_own_port_and_no_message_tells_what_listens_on_others() {
    let (server, other) = (Server::start().await, Server::start().await);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (allow, host) in
        [("127.0.0.1", "127.0.0.1"), ("127.0.0.0/8", "127.0.0.1"), ("git.internal", "git.internal")]
    {
        let answers = || Answers::default().with("git.internal", &["127.0.0.1"]);
        let fetcher = fetcher(&[&format!("{allow}:{}", server.port)], PATIENT, answers());
        let url = |port: u16, path: &str| format!("http://{host}:{port}{path}");
        assert_hello(get(&fetcher, &url(server.port, "/ok"), Redirects::Guarded).await);
        for scheme in ["http", "https"] {
            let mut told = Vec::new();
            for port in [other.port, closed] {
                let target = url(port, "/ok").replace("http:", &format!("{scheme}:"));
                let as_given = refused_as_given(get(&fetcher, &target, Redirects::Guarded).await);
                let to = url(server.port, &format!("/to?{target}"));
                let redirected = refused_on_redirect(get(&fetcher, &to, Redirects::Guarded).await);
                assert!(as_given.contains("--allow-fetch"), "{as_given}");
                told.push([as_given, redirected].map(|text| text.replace(&port.to_string(), "PORT")));
            }
            assert_eq!(told[0], told[1], "{allow} {scheme}");
        }
    }
    assert_eq!(other.requests(), [""; 0]);
    // Without a port it is for 80 and 443 alone.
    let message = refused_as_given(
        get(&fetcher(&["127.0.0.1"], PATIENT, Answers::default()), &server.url("/ok"), Redirects::Guarded)
            .await,
    );
    assert!(message.contains(&format!("--allow-fetch 127.0.0.1:{}`", server.port)), "{message}");
}

#[tokio::test]
async fn dev_reaches_localhost_through_the_systems_resolver() {
    let server = Server::start().await;
    let file_servers = FileServers { rules: Vec::new(), loopback: true };
    let guard = Guard { file_servers, loopback: true, ..Guard::default() };
    let fetcher = Fetcher::new(guard, PATIENT, Arc::new(SystemResolver)).unwrap();
    let url = format!("http://localhost:{}/ok", server.port);
    assert_hello(get(&fetcher, &url, Redirects::SameOrigin).await);
}

#[tokio::test]
async fn more_than_the_limit_is_refused_announced_or_not() {
    for path in ["/announced", "/unannounced"] {
        let error = get_path(path, Redirects::Guarded).await.unwrap_err();
        assert!(matches!(error, FetchError::TooLarge { max_bytes: 100_000, .. }), "{path}: {error}");
    }
}

#[tokio::test]
async fn exactly_the_limit_is_read() {
    let server = Server::start().await;
    let url = Url::parse(&server.url("/chunked")).unwrap();
    let fetcher = local_fetcher(PATIENT);
    let limits = |max_bytes| FetchLimits { max_bytes, redirects: Redirects::Guarded };
    assert_hello(fetcher.get(&url, limits(5)).await);
    assert!(matches!(fetcher.get(&url, limits(4)).await, Err(FetchError::TooLarge { .. })));
}

#[tokio::test]
async fn what_is_no_answer_or_breaks_off_or_is_encoded_is_broken() {
    let server = Server::start().await;
    let fetcher = fetcher(&["127.0.0.1:*"], PATIENT, Answers::default().with("empty.example", &[]));
    let paths = ["/short", "/short-chunked", "/nothing", "/garbage", "/gzip", "/to-nowhere"];
    let no_tls = server.url("/ok").replace("http:", "https:");
    let no_address = ["https://empty.example/x", "https://unknown.example/x"].map(str::to_owned);
    for url in paths.map(|path| server.url(path)).into_iter().chain(no_address).chain([no_tls]) {
        let error = get(&fetcher, &url, Redirects::Guarded).await.unwrap_err();
        assert!(matches!(error, FetchError::Broken { .. }), "{url}: {error}");
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
}

#[tokio::test]
async fn each_time_limit_runs_out_by_itself() {
    let short = Duration::from_millis(200);
    let server = Server::start().await;
    for path in ["/stall", "/silent"] {
        let fetcher = local_fetcher(Timeouts { idle: short, ..PATIENT });
        let error = get(&fetcher, &server.url(path), Redirects::Guarded).await.unwrap_err();
        assert!(matches!(error, FetchError::TimedOut { wait: Wait::Idle(_), .. }), "{path}: {error}");
    }
    let fetcher = local_fetcher(Timeouts { total: short, ..PATIENT });
    let error = get(&fetcher, &server.url("/drip"), Redirects::Guarded).await.unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { wait: Wait::Total(_), .. }), "{error}");

    let answers = Arc::new(Answers::default().without_end("never.example"));
    let fetcher = Fetcher::new(guard(&[]), Timeouts { connect: short, ..PATIENT }, answers).unwrap();
    let error = get(&fetcher, "https://never.example/x", Redirects::Guarded).await.unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { wait: Wait::Connect(_), .. }), "{error}");
}

#[test]
fn proxy_variables_are_ignored() {
    run_again_behind_a_dead_proxy("fetch::guarded::a_file_is_read_with_plain_headers");
}
