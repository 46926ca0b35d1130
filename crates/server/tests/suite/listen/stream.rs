//! What the bytes of a connection say about its client.

use std::{sync::Arc, time::Duration, time::Instant};

use axum::http::Method;
use countersign_server::limits::client_wait::{CLIENT_TIMEOUT, ClientWait, Dropped};
use countersign_server::limits::connections::{ConnectionLimits, Connections};
use countersign_server::serve::listen::stream::Stream;
use tokio::{io::AsyncReadExt as _, io::AsyncWriteExt as _, io::DuplexStream, time::timeout};

const HOUR: Duration = Duration::from_secs(60 * 60);

fn client_wait() -> Arc<ClientWait> {
    Arc::new(ClientWait::new(Instant::now()))
}

/// A request came, and its answer is being sent.
fn answer(client_wait: &ClientWait) {
    client_wait.begin(&Method::GET, Instant::now());
    drop(client_wait.pause());
}

fn stream<S>(inner: S, client_wait: &Arc<ClientWait>) -> Stream<S> {
    let limits = ConnectionLimits { total: 10, per_address: None };
    Stream::new(inner, Arc::clone(client_wait), Arc::new(Connections::new(limits)))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_no_request_is_dropped() {
    let client_wait = client_wait();
    assert!(client_wait.is_waiting());
    assert_eq!(timeout(2 * CLIENT_TIMEOUT, client_wait.run_out()).await, Ok(Dropped::TooSlow));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_is_told_nothing_is_not_the_one_that_is_waited_for() {
    let client_wait = client_wait();
    let (inner, mut client) = tokio::io::duplex(64);
    let mut stream = stream(inner, &client_wait);
    answer(&client_wait);
    let listening = client_wait.listen();
    stream.write_all(b"event").await.unwrap();
    stream.flush().await.unwrap();
    assert!(!listening.is_blocked() && !client_wait.is_waiting());
    assert!(timeout(HOUR, client_wait.run_out()).await.is_err(), "no one has to go");
    client.read_exact(&mut [0; 5]).await.unwrap();
    // Waiting for the next request on this connection is the same as on any other.
    drop(listening);
    assert_eq!(timeout(2 * CLIENT_TIMEOUT, client_wait.run_out()).await, Ok(Dropped::TooSlow));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_takes_nothing_is_dropped() {
    let client_wait = client_wait();
    let (inner, mut client) = tokio::io::duplex(64);
    let mut stream = stream(inner, &client_wait);
    answer(&client_wait);
    let listening = client_wait.listen();
    let writing = tokio::spawn(async move { stream.write_all(&[0; 200]).await });
    // The client takes a little at a time, which is fine.
    for _ in 0..2 {
        assert!(timeout(CLIENT_TIMEOUT / 2, client_wait.run_out()).await.is_err());
        assert!(listening.is_blocked() && client_wait.is_waiting());
        client.read_exact(&mut [0; 64]).await.unwrap();
    }
    assert_eq!(timeout(2 * CLIENT_TIMEOUT, client_wait.run_out()).await, Ok(Dropped::TooSlow));
    client.read_exact(&mut [0; 72]).await.unwrap();
    writing.await.unwrap().unwrap();
    assert!(!listening.is_blocked());
}

/// A stream whose client has gone.
fn ended(client_wait: &Arc<ClientWait>) -> Stream<DuplexStream> {
    stream(tokio::io::duplex(64).0, client_wait)
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_client_that_waits_for_an_answer_is_seen_after_it() {
    let client_wait = client_wait();
    let mut stream = ended(&client_wait);
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    client_wait.begin(&Method::GET, Instant::now());
    assert!(timeout(HOUR, stream.read(&mut [0; 8])).await.is_err(), "an answer is under way");
    drop(client_wait.pause());
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    client_wait.begin(&Method::POST, Instant::now());
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_head_is_large_beyond_8_kib_and_a_body_never() {
    let client_wait = client_wait();
    let (inner, mut client) = tokio::io::duplex(64 * 1024);
    let mut stream = stream(inner, &client_wait);
    let mut pass = async |bytes: usize| {
        client.write_all(&vec![b'a'; bytes]).await.unwrap();
        stream.read_exact(&mut vec![0; bytes]).await.unwrap();
    };
    pass(8 * 1024).await;
    assert!(!client_wait.has_large_head());
    client_wait.begin(&Method::POST, Instant::now());
    pass(16 * 1024).await;
    drop(client_wait.pause());
    pass(8 * 1024).await;
    assert!(!client_wait.has_large_head());
    pass(1).await;
    assert!(client_wait.has_large_head());
}
