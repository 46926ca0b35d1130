//! A flood of requests for pages (D229), on real connections.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, http::Uri};
use countersign_server::{limits::Limit, serve::answer::Service, serve::listen};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::{io::AsyncReadExt as _, io::AsyncWriteExt as _, sync::Semaphore, sync::watch};

use super::rates::limiter_of;
use crate::listen::service;

const MOST: usize = 16;

/// Sends a request from an address of this machine.
async fn request(from: &str, to: SocketAddr, target: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    let mut stream = socket.connect(to).await.unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
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
    let (service, gate) = service(router);
    let limiter = limiter_of(1_000, Duration::from_secs(1));
    let service = Service { limiter: Some(Arc::clone(&limiter)), ..service };
    tokio::spawn(listen::serve(listener, service, gate, stopped));

    let mut waiting = Vec::new();
    for _ in 0..MOST {
        waiting.push(request("127.0.0.2", address, "/projects").await);
    }
    begun.acquire_many(MOST as u32).await.unwrap().forget();
    for _ in 0..3 {
        let refused = answer(request("127.0.0.2", address, "/projects").await).await;
        assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("retry-after: 1"), "{refused}");
    }
    assert_eq!(limiter.refusals(Limit::AddressPages), 3);
    // What is no page has its own limits.
    let ping = answer(request("127.0.0.2", address, "/v1/ping").await).await;
    assert!(ping.starts_with("HTTP/1.1 200 "), "{ping}");
    let other = request("127.0.0.3", address, "/projects").await;
    begun.acquire().await.unwrap().forget();
    ready.add_permits(MOST + 1);
    for page in waiting.into_iter().chain([other]) {
        let page = answer(page).await;
        assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with("made"), "{page}");
    }
    // Each page gave its share back.
    ready.add_permits(1);
    let again = answer(request("127.0.0.2", address, "/projects").await).await;
    assert!(again.starts_with("HTTP/1.1 200 "), "{again}");
}
