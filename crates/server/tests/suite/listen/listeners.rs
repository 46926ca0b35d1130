//! Listeners to events on connections that have everything except a socket.

use std::{sync::Arc, time::Duration, time::Instant};

use countersign_server::serve::{answer::ConnectionContext, listen::serve_stream, table};
use countersign_server::{api::state::App, limits::client_wait::ClientWait, limits::client_wait::Dropped};
use tokio::{io::AsyncReadExt as _, io::AsyncWriteExt as _, io::DuplexStream, sync::watch, time::timeout};

use super::service;
use crate::support::{INDEX, commit, start};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A connection with 1 KiB between server and client, on which a request has been sent.
async fn connect(app: &App, target: &str) -> (impl Future<Output = Option<Dropped>> + use<>, DuplexStream) {
    let (stream, mut client) = tokio::io::duplex(1024);
    let request = format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let client_wait = Arc::new(ClientWait::new(Instant::now()));
    let visitor = ConnectionContext {
        service: Arc::new(service(table::build(app.clone()))),
        peer: std::net::Ipv4Addr::LOCALHOST.into(),
        client: None,
        is_proxy: false,
        client_wait: Arc::clone(&client_wait),
    };
    let serving = async move {
        let (_running, ending) = watch::channel(false);
        tokio::select! {
            () = serve_stream(stream, visitor, ending) => None,
            dropped = client_wait.run_out() => Some(dropped),
        }
    };
    (serving, client)
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_hears_nothing_but_signs_of_life_stays() {
    let (_dir, running) = start().await;
    let (serving, mut client) = connect(running.app(), "/v1/events").await;
    let serving = tokio::spawn(serving);
    let mut heard = String::new();
    while heard.matches(": nothing new").count() < 200 {
        let mut buffer = [0; 1024];
        let count = timeout(HOUR, client.read(&mut buffer)).await.unwrap().unwrap();
        assert!(count > 0, "the connection was closed: {heard}");
        heard.push_str(str::from_utf8(&buffer[..count]).unwrap());
    }
    assert_eq!(running.app().events.listeners(), 1);
    drop(client);
    assert_eq!(timeout(HOUR, serving).await.unwrap().unwrap(), None);
    assert_eq!(running.app().events.listeners(), 0);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_read_is_let_go_and_little_is_kept_for_it() {
    let (_dir, running) = start().await;
    let app = running.app();
    let first = app.store.head().commit;
    let title = format!("Sign and complete {INDEX}");
    futures_util::future::join_all((0..500).map(|_| commit(app, &title))).await;
    let (serving, _client) = connect(app, &format!("/v1/events?last_event_id={first}")).await;
    assert_eq!(timeout(HOUR, serving).await.unwrap(), Some(Dropped::TooSlow));
    assert_eq!(app.events.listeners(), 0);
    // All of it would be 1,000 events, a third of a megabyte.
    assert!(app.events.sent.get() < 150, "{}", app.events.sent.get());
    running.stop().await.unwrap();
}
