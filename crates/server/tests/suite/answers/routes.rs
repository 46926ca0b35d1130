//! Every route: what it answers when it fails, and under which name it is counted.

use std::net::SocketAddr;

use axum::{Router, routing::get};
use countersign_server::serve::{listen, listen::Lanes, table::kinds, table::with_common_answers};
use tokio::{net::TcpListener, sync::watch};

use crate::listen::service;
use crate::support::{request, send};

/// A server whose `/panics/…` routes do what they say, under the layers of every route.
async fn serve() -> (SocketAddr, watch::Sender<bool>) {
    let routes = Router::new()
        .route("/fine", get(async || "fine"))
        .route("/panics/with-text", get(async || -> &str { panic!("a secret of {}", "ours") }))
        .route("/panics/with-value", get(async || -> &str { std::panic::panic_any(7) }))
        .route("/panics/later", get(async || -> &str { panic_later().await }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let service = service(with_common_answers(routes));
    tokio::spawn(listen::serve(listener, service, Lanes::shared(), stopped));
    (address, stop)
}

async fn panic_later() -> &'static str {
    tokio::task::yield_now().await;
    panic!("a secret of ours")
}

/// The raw answers to these targets, requested in order over one connection.
async fn ask(address: SocketAddr, targets: &[&str]) -> String {
    let (last, others) = targets.split_last().unwrap();
    let keep = others.iter().map(|target| format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n"));
    send(address, keep.collect::<String>() + &request(last, "")).await
}

#[tokio::test]
async fn a_handler_that_panics_answers_500_and_gives_nothing_away() {
    let (address, _stop) = serve().await;
    for targets in [&["/panics/with-text"], &["/panics/with-value"], &["/panics/later"]] {
        let answer = ask(address, targets).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 500 "), "{answer}");
        assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{answer}");
        assert!(head.contains("\r\nx-request-id: "), "{answer}");
        assert_eq!(body, r#"{"error":"an unexpected error occurred","code":"internal_error"}"#);
        assert!(!head.contains("secret") && !head.contains("panicked"), "{answer}");
    }
}

#[tokio::test]
async fn a_panic_ends_neither_its_connection_nor_the_server() {
    let (address, _stop) = serve().await;
    let answers = ask(address, &["/panics/with-text", "/fine", "/panics/later", "/nowhere", "/fine"]).await;
    let statuses: Vec<_> =
        answers.split("HTTP/1.1 ").skip(1).map(|answer| answer.get(..3).unwrap()).collect();
    assert_eq!(statuses, ["500", "200", "500", "404", "200"]);
    let answer = ask(address, &["/fine"]).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("fine"), "{answer}");
}

#[test]
fn every_kind_of_request_is_told_by_its_path() {
    let names: std::collections::HashMap<_, _> = kinds().all().collect();
    for (path, name) in [
        ("/v1/files/https/example.org/443/a", "files"),
        ("/v1/files/", "files"),
        ("/v1/get_signers/a/b", "get_signers"),
        ("/v1/get_signers_chain/a", "get_signers_chain"),
        ("/v1/get_artifact_signers_chain/a", "get_signers_chain"),
        ("/v1/signatures", "signatures"),
        ("/v1/signatures/a", "signature_status"),
        ("/v1/files-to-sign/a", "files_to_sign"),
        ("/v1/pending_signatures", "pending_signatures"),
        ("/v1/register_repo", "register_repo"),
        ("/healthz", "healthz"),
        ("/readyz", "readyz"),
        ("/", "page"),
        ("/p/https/example.org/443/a", "page"),
        ("/assets/style.css", "page"),
        ("/badge/https/example.org/443/a.svg", "badge"),
        ("/v1/events", "events"),
        ("/v1/releases", "releases"),
        ("/v1/projects", "projects"),
        ("/v1/keys/svc-pub:x", "keys"),
        ("/v1/keys/svc-pub:x/pending", "keys"),
        ("/p", "other"),
        ("/v1/filesystem/x", "other"),
        ("/v1/files", "other"),
        ("/v2/files/x", "other"),
        ("/healthz/", "other"),
    ] {
        assert_eq!(names[&kinds().kind_of(path)], name, "{path}");
    }
}

#[test]
fn only_health_checks_have_no_rate_limit() {
    let unlimited = kinds().all().filter(|(kind, _)| !kinds().is_limited(*kind)).map(|(_, name)| name);
    assert_eq!(unlimited.collect::<Vec<_>>(), ["healthz", "readyz"]);
}
