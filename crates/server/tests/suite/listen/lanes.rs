//! Threads that each serve connections of their own.

use std::sync::{Arc, Mutex, mpsc};
use std::{net::SocketAddr, thread};

use axum::{Router, http::Uri};
use countersign_server::serve::listen::{Lanes, serve};
use tokio::sync::{Notify, oneshot, watch};
use tokio::{net::TcpListener, net::TcpStream, task::JoinHandle, time::timeout};

use super::service;
use crate::support::{TIMEOUT, request, send};

async fn start(router: Router, lanes: Lanes) -> (SocketAddr, watch::Sender<bool>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    (address, stop, tokio::spawn(serve(listener, service(router), lanes, stopped)))
}

/// The answer to a request over a connection of its own.
fn ask(address: SocketAddr, target: &str) -> JoinHandle<String> {
    tokio::spawn(send(address, request(target, "")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_takes_its_time_does_not_hold_up_the_others_of_its_lane() {
    let (go, gone) = mpsc::channel();
    let (go, gone) = (Arc::new(Mutex::new(go)), Arc::new(Mutex::new(gone)));
    let begun = Arc::new(Notify::new());
    let has_begun = Arc::clone(&begun);
    let router = Router::new().fallback(async move |uri: Uri| {
        if uri.path() == "/quick" {
            return go.lock().unwrap().send(()).map_or("alone", |()| "prompt");
        }
        begun.notify_one();
        // Blocks its thread until the other one is asked.
        gone.lock().unwrap().recv().map_or("never", |()| "late")
    });
    let (address, _stop, _serving) = start(router, Lanes::start_some(1).unwrap()).await;
    let slow = ask(address, "/slow");
    timeout(TIMEOUT, has_begun.notified()).await.unwrap();
    assert!(timeout(TIMEOUT, ask(address, "/quick")).await.unwrap().unwrap().ends_with("prompt"));
    assert!(timeout(TIMEOUT, slow).await.unwrap().unwrap().ends_with("late"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_connection_goes_where_the_fewest_are_served() {
    let lanes = Lanes::start_some(2).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // A connection that lasts until its sender ends, and the lane that it is in.
    let connect = async || {
        let (_, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (keep, kept) = oneshot::channel::<()>();
        let (say, lane) = oneshot::channel();
        let serve = |_| async move {
            say.send(thread::current().name().map(str::to_owned)).unwrap();
            let _ = kept.await;
        };
        let serving = lanes.spawn(accepted.unwrap().0, serve).unwrap();
        (lane.await.unwrap().unwrap(), keep, serving)
    };
    let [first, second, third, fourth] = [connect().await, connect().await, connect().await, connect().await];
    let lanes_of = [&first, &second, &third, &fourth].map(|connection| &*connection.0);
    assert_eq!(lanes_of, ["connections-0", "connections-1", "connections-0", "connections-1"]);
    for (_, keep, serving) in [first, third] {
        drop(keep);
        timeout(TIMEOUT, serving).await.unwrap().unwrap();
    }
    let newer = [connect().await, connect().await];
    assert_eq!(newer.each_ref().map(|connection| &*connection.0), ["connections-0", "connections-0"]);
}

#[tokio::test]
async fn lanes_end_with_the_listener() {
    let lanes = Lanes::start_some(1).unwrap();
    let (task, ended) = oneshot::channel::<()>();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    // Something that goes on in the lane after its connection.
    let serve = |_| async {
        tokio::spawn(async move {
            let _task = task;
            std::future::pending::<()>().await;
        });
    };
    timeout(TIMEOUT, lanes.spawn(accepted.unwrap().0, serve).unwrap()).await.unwrap().unwrap();
    let (_, stop, serving) = start(Router::new(), lanes).await;
    stop.send_replace(true);
    timeout(TIMEOUT, serving).await.unwrap().unwrap();
    // What goes on in a lane is dropped with it.
    assert!(timeout(TIMEOUT, ended).await.unwrap().is_err());
}
