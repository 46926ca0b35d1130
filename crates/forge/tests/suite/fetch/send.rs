//! Guarded sending over real sockets of this machine.

use std::{time::Duration, time::Instant};

use countersign_forge::fetch::{Fetcher, Post, SendError, Timeouts, TryAgain};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use crate::support::{Answers, Routes, Server, fetcher, reply, run_again_behind_a_dead_proxy};

const TIMEOUT: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

async fn post_to(fetcher: &Fetcher, url: &str, timeout: Duration) -> Result<(), SendError> {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let post = Post { headers, body: "{\"a\":1}".into(), timeout };
    fetcher.post(&Url::parse(url).unwrap(), post).await
}

/// Posts to a path of a server that may be reached.
async fn post(server: &Server, path: &str, timeout: Duration) -> Result<(), SendError> {
    post_to(&fetcher(&["127.0.0.1:*"], Timeouts::default(), Answers::default()), &server.url(path), timeout)
        .await
}

#[tokio::test]
async fn a_body_arrives_as_it_is_with_its_headers() {
    let server = Server::start().await;
    post(&server, "/ok?q=1", TIMEOUT).await.unwrap();
    let [request] = server.requests().try_into().unwrap();
    assert!(request.starts_with("POST /ok?q=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"a\":1}"), "{request}");
    let request = request.to_ascii_lowercase();
    assert!(request.contains("content-type: application/json\r\n"), "{request}");
    let agent = concat!("user-agent: countersign/", env!("CARGO_PKG_VERSION"), "\r\n");
    assert!(request.contains(agent), "{request}");
}

#[tokio::test]
async fn any_2xx_is_success_whatever_its_body_is() {
    let server = Server::start().await;
    for path in ["/status/201-Made", "/status/204-Empty", "/gzip", "/unannounced", "/short", "/short-chunked"]
    {
        assert_eq!(post(&server, path, TIMEOUT).await, Ok(()), "{path}");
    }
    for path in ["/stall", "/drip"] {
        let begun = Instant::now();
        assert_eq!(post(&server, path, SHORT).await, Ok(()), "{path}");
        assert!(begun.elapsed() < TIMEOUT, "{path}");
    }
}

#[tokio::test]
async fn any_other_status_is_an_error_that_names_it_and_no_more_of_the_url_than_its_origin() {
    let server = Server::start().await;
    for (path, code) in
        [("/status/500-Oops?key=s3cret", 500), ("/status/404-No", 404), ("/status/410-Gone", 410)]
    {
        let error = post(&server, path, TIMEOUT).await.unwrap_err();
        assert!(matches!(error, SendError::Status { status, again: None, .. } if status == code), "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("http://127.0.0.1:{}`", server.port)), "{text}");
        assert!(!text.contains("s3cret") && !text.contains("/status"), "{text}");
    }
}

#[tokio::test]
async fn a_redirect_is_an_error_and_is_not_followed() {
    let server = Server::start().await;
    for path in ["/to?/ok", "/status/307-Elsewhere", "/status/304-Same"] {
        let error = post(&server, path, TIMEOUT).await.unwrap_err();
        assert!(matches!(error, SendError::Redirected { .. }), "{path}: {error}");
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn the_answer_may_say_when_to_come_back() {
    let busy = reply("503 Busy", "Retry-After: 90\r\nContent-Length: 0\r\n", "");
    let server = Server::start_with(|_| Routes::from([("/busy".to_owned(), busy)])).await;
    let error = post(&server, "/busy", TIMEOUT).await.unwrap_err();
    assert_eq!(error.again(), Some(TryAgain::In(Duration::from_secs(90))));
}

#[tokio::test]
async fn a_receiver_that_says_nothing_is_given_up_in_time() {
    let server = Server::start().await;
    let error = post(&server, "/silent", SHORT).await.unwrap_err();
    assert!(matches!(error, SendError::TimedOut { .. }), "{error}");
    let fetcher = fetcher(&[], Timeouts::default(), Answers::default().without_end("never.example"));
    let error = post_to(&fetcher, "https://never.example/x", SHORT).await.unwrap_err();
    assert!(matches!(error, SendError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn what_is_no_answer_is_an_error() {
    let server = Server::start().await;
    for path in ["/nothing", "/garbage"] {
        let error = post(&server, path, TIMEOUT).await.unwrap_err();
        assert!(matches!(error, SendError::Broken { .. }), "{path}: {error}");
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fetcher = fetcher(&["127.0.0.1:*"], Timeouts::default(), Answers::default());
    let error = post_to(&fetcher, &format!("http://{closed}/x"), TIMEOUT).await.unwrap_err();
    assert!(matches!(error, SendError::Broken { .. }), "{error}");
}

#[tokio::test]
async fn nothing_is_sent_to_an_address_that_is_not_public_by_literal_or_by_name() {
    let server = Server::start().await;
    let answers = Answers::default().with("hooks.internal", &["127.0.0.1"]);
    let closed = fetcher(&[], Timeouts::default(), answers);
    for (url, hint) in [
        (server.url("/ok"), "--allow-fetch 127.0.0.1"),
        (server.url("/ok").replace("http:", "https:"), "--allow-fetch 127.0.0.1"),
        (format!("https://hooks.internal:{}/ok", server.port), "--allow-fetch hooks.internal"),
        ("https://169.254.169.254/latest".to_owned(), "--allow-fetch 169.254.169.254"),
        (format!("http://hooks.internal:{}/ok", server.port), "plain http is not allowed"),
    ] {
        let error = post_to(&closed, &url, TIMEOUT).await.unwrap_err();
        assert!(error.is_refused() && error.to_string().contains(hint), "{url}: {error}");
    }
    assert!(server.requests().is_empty());

    let answers = Answers::default().with("hooks.internal", &["127.0.0.1"]);
    let open = fetcher(&[&format!("hooks.internal:{}", server.port)], Timeouts::default(), answers);
    let url = format!("http://hooks.internal:{}/ok", server.port);
    assert_eq!(post_to(&open, &url, TIMEOUT).await, Ok(()));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_a_url_tells_without_its_name_being_resolved_can_be_checked_before() {
    let fetcher = fetcher(&[], Timeouts::default(), Answers::default());
    let check = |text: &str| fetcher.check_target(&Url::parse(text).unwrap());
    assert_eq!(check("https://hooks.example/x"), Ok(()));
    for url in [
        "http://hooks.example/x", "https://10.0.0.1/x", "https://u:p@hooks.example/x",
        "ftp://hooks.example/x",
    ] {
        let text = check(url).unwrap_err().to_string();
        assert!(!text.contains("u:p"), "{text}");
    }
}

#[test]
fn proxy_variables_are_ignored() {
    run_again_behind_a_dead_proxy("fetch::send::a_body_arrives_as_it_is_with_its_headers");
}
