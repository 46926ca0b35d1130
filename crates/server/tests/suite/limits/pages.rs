//! A flood of requests for pages (D229), on real connections.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, http::Uri};
use countersign_server::{limits::Limit, serve::answer::Service, serve::listen, serve::listen::Lanes};
use tokio::{net::TcpListener, sync::Semaphore, sync::watch, task::JoinHandle};

use super::rates::limiter_of;
use crate::listen::service;
use crate::support::{request, send_from};

const MOST: usize = 16;

/// The answer to a request from an address of this machine.
fn ask(from: &'static str, to: SocketAddr, target: &str) -> JoinHandle<String> {
    tokio::spawn(send_from(from, to, request(target, "")))
}

#[tokio::test]
async fn an_address_that_floods_pages_is_refused_at_once_and_others_are_served() {
    // Each page takes until there is a permit for it.
    let (begun, ready) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begin, wait) = (Arc::clone(&begun), Arc::clone(&ready));
    let router = Router::new().fallback(async move |uri: Uri| {
        if uri.path() == "/projects" {
            begin.add_permits(1);
            wait.acquire().await.unwrap().forget();
        }
        "made"
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, stopped) = watch::channel(false);
    let limiter = limiter_of(1_000, Duration::from_secs(1));
    let service = Service { limiter: Some(Arc::clone(&limiter)), ..service(router) };
    tokio::spawn(listen::serve(listener, service, Lanes::shared(), stopped));

    let mut waiting = Vec::new();
    for _ in 0..MOST {
        waiting.push(ask("127.0.0.2", address, "/projects"));
    }
    begun.acquire_many(MOST as u32).await.unwrap().forget();
    for _ in 0..3 {
        let refused = ask("127.0.0.2", address, "/projects").await.unwrap();
        assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("retry-after: 1"), "{refused}");
    }
    assert_eq!(limiter.refusals(Limit::AddressPages), 3);
    // What is no page has its own limits.
    let ping = ask("127.0.0.2", address, "/v1/ping").await.unwrap();
    assert!(ping.starts_with("HTTP/1.1 200 "), "{ping}");
    let other = ask("127.0.0.3", address, "/projects");
    begun.acquire().await.unwrap().forget();
    ready.add_permits(MOST + 1);
    for page in waiting.into_iter().chain([other]) {
        let page = page.await.unwrap();
        assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with("made"), "{page}");
    }
    // Each page gave its share back.
    ready.add_permits(1);
    let again = ask("127.0.0.2", address, "/projects").await.unwrap();
    assert!(again.starts_with("HTTP/1.1 200 "), "{again}");
}
