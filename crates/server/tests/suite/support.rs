//! A server inside the test program.

use std::{net::SocketAddr, time::Duration};

use countersign_core::{rules::snapshot::Change, values::path::RepoPath};
use countersign_server::operate::config::{GivenSettings, Settings};
use countersign_server::{api::state::App, serve::start, serve::start::Running};
use countersign_store::machine::clock::Clock;
use tempfile::TempDir;
use tokio::{io::AsyncReadExt as _, io::AsyncWriteExt as _, net::TcpSocket, time::timeout};

pub(crate) const INDEX: &str = "https/dl.example.org/443/acme/app/v1/svc.index.json";
const KEY: &str = "svc-pub:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw";

pub(crate) async fn start() -> (TempDir, Running) {
    start_with(Clock::system()).await
}

pub(crate) async fn start_with(clock: Clock) -> (TempDir, Running) {
    let dir = TempDir::new().unwrap();
    let given = GivenSettings {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        data_dir: Some(dir.path().join("data")),
        dev: Some(true),
        ..GivenSettings::default()
    };
    let settings = Settings::resolve(given).unwrap();
    (dir, start::start(settings, clock).await.unwrap())
}

/// A commit with this message, which changes a file of its own.
pub(crate) async fn commit(app: &App, message: &str) -> String {
    let mut change = Change::new(format!("{message}\n\nBy: {KEY}\n"));
    let name = format!("notes/{}", app.store.recent_commits().end());
    change.write(RepoPath::parse(&name).unwrap(), name.into_bytes());
    app.store.transact(move |_, _| Ok::<_, ()>((change.clone(), ()))).await.unwrap().unwrap();
    app.store.head().commit.to_string()
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Only so that a server that hangs fails the test instead of hanging it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// All that is answered to these requests, on a connection of their own.
pub(crate) async fn send(address: SocketAddr, requests: String) -> String {
    send_from("127.0.0.1", address, requests).await
}

/// Sends these requests from an address of this machine, and returns all that is answered.
pub(crate) async fn send_from(from: &str, to: SocketAddr, requests: String) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    let mut stream = socket.connect(to).await.unwrap();
    stream.write_all(requests.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(TIMEOUT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

/// A request for a target, the last one of its connection. `headers` are whole lines.
pub(crate) fn request(target: &str, headers: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{headers}\r\n")
}

/// Asks as a browser does. `headers` are whole lines.
pub(crate) async fn get(address: SocketAddr, target: &str, headers: &str) -> Answer {
    let answer = send(address, request(target, headers)).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, body: body.to_owned() }
}
