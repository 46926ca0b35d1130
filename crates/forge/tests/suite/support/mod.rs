//! A small HTTP server on this machine, and name resolution that answers what a test says.

#![allow(dead_code, reason = "each file of tests uses a part of this")]

use std::{collections::HashMap, io, net::IpAddr, net::SocketAddr, sync::Arc, sync::Mutex, time::Duration};

use countersign_forge::{fetch::Fetcher, fetch::Timeouts, guard::Guard, url::UrlProblem, url::UrlRefusal};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::{io::AsyncReadExt, io::AsyncWriteExt, net::TcpListener, net::TcpStream, sync::Semaphore};

pub(crate) mod forge;

pub(crate) const PATIENT: Timeouts = Timeouts {
    connect: Duration::from_secs(20),
    idle: Duration::from_secs(20),
    total: Duration::from_secs(20),
    pace: Duration::from_secs(20),
};

pub(crate) fn guard(allow: &[&str]) -> Guard {
    Guard { allow: allow.iter().map(|allow| allow.parse().unwrap()).collect(), ..Guard::default() }
}

pub(crate) fn fetcher(allow: &[&str], timeouts: Timeouts, answers: Answers) -> Fetcher {
    Fetcher::new(guard(allow), timeouts, Arc::new(answers)).unwrap()
}

/// What is wrong with a URL, wherever it came from.
pub(crate) fn problem_of(refusal: UrlRefusal) -> UrlProblem {
    match refusal {
        UrlRefusal::Url { problem, .. } => problem,
        UrlRefusal::NoUrl => panic!("a URL was given"),
    }
}

/// Runs a test again in a process of its own, since a process's environment cannot be changed safely.
pub(crate) fn run_again(test: &str, environment: &[(&str, Option<&str>)]) {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test]);
    for (name, value) in environment {
        match value {
            Some(value) => child.env(name, value),
            None => child.env_remove(name),
        };
    }
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Runs a test again with a proxy in its environment. Nothing listens there, so a request through it would fail.
pub(crate) fn run_again_behind_a_dead_proxy(test: &str) {
    let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let proxies = names.map(|name| (name, Some("http://127.0.0.1:1")));
    run_again(test, &[&proxies[..], &[("no_proxy", None), ("NO_PROXY", None)]].concat());
}

pub(crate) struct Server {
    pub(crate) port: u16,
    state: Arc<ServerState>,
}

struct ServerState {
    routes: Mutex<Routes>,
    requests: Mutex<Vec<String>>,
    arrivals: Semaphore,
    bytes: Semaphore,
}

/// Whole answers by request target.
pub(crate) type Routes = HashMap<String, String>;

/// What the server does after it has read a request.
enum Reply {
    Send(String),
    /// Sends this, then nothing, until the client leaves.
    Stall(String),
    /// Sends this, then so many bytes every 20 ms, until the client leaves.
    Drip(String, usize),
    /// Sends this, then a byte whenever the test says so.
    OnDemand(String),
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| Routes::new()).await
    }

    /// Starts a server with these answers besides the usual ones. They may name the server's own port.
    pub(crate) async fn start_with(routes: impl FnOnce(u16) -> Routes) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(ServerState {
            routes: Mutex::new(routes(port)),
            requests: Mutex::default(),
            arrivals: Semaphore::new(0),
            bytes: Semaphore::new(0),
        });
        let own = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&own)));
            }
        });
        Self { port, state }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// All requests so far: their heads, and the bodies that were announced.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    pub(crate) fn routes(&self) -> Routes {
        self.state.routes.lock().unwrap().clone()
    }

    /// Begins again, with other answers and without requests.
    pub(crate) fn reset(&self, routes: Routes) {
        *self.state.routes.lock().unwrap() = routes;
        self.state.requests.lock().unwrap().clear();
    }

    /// Waits for the next request.
    pub(crate) async fn arrival(&self) {
        self.state.arrivals.acquire().await.unwrap().forget();
    }

    /// One more byte for the client of `/on-demand`.
    pub(crate) fn send_byte(&self) {
        self.state.bytes.add_permits(1);
    }
}

async fn answer(mut stream: TcpStream, state: Arc<ServerState>) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await?;
        if head.is_empty() && !matches!(byte, b'G' | b'P') {
            return stream.write_all(b"HTTP/1.1 400 This is no TLS\r\n\r\n").await;
        }
        head.push(byte);
    }
    let mut request = String::from_utf8(head).unwrap();
    let target = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let lines: Vec<_> = request.lines().map(str::to_ascii_lowercase).collect();
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await?;
    request.push_str(str::from_utf8(&body).unwrap());
    state.requests.lock().unwrap().push(request);
    state.arrivals.add_permits(1);
    let text = state.routes.lock().unwrap().get(&target).cloned();
    if let Some(text) = text {
        return stream.write_all(text.as_bytes()).await;
    }
    match route(&target) {
        Reply::Send(text) => stream.write_all(text.as_bytes()).await,
        Reply::Stall(text) => {
            stream.write_all(text.as_bytes()).await?;
            stream.read_u8().await.map(drop)
        }
        Reply::Drip(text, bytes) => {
            stream.write_all(text.as_bytes()).await?;
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            loop {
                ticks.tick().await;
                stream.write_all(".".repeat(bytes).as_bytes()).await?;
            }
        }
        Reply::OnDemand(text) => {
            stream.write_all(text.as_bytes()).await?;
            loop {
                state.bytes.acquire().await.unwrap().forget();
                stream.write_all(b".").await?;
            }
        }
    }
}

fn route(target: &str) -> Reply {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Reply::Send(match path {
        "/ok" => reply("200 OK", "Content-Length: 5\r\n", "hello"),
        "/empty" => reply("200 OK", "Content-Length: 0\r\n", ""),
        "/identity" => reply("200 OK", "Content-Encoding: Identity\r\nContent-Length: 5\r\n", "hello"),
        "/gzip" => reply("200 OK", "Content-Encoding: gzip\r\nContent-Length: 5\r\n", "hello"),
        "/to" => reply("302 Found", &format!("Location: {query}\r\nContent-Length: 0\r\n"), ""),
        "/to-nowhere" => reply("302 Found", "Content-Length: 0\r\n", ""),
        "/announced" => reply("200 OK", "Content-Length: 999999\r\n", ""),
        "/unannounced" => reply("200 OK", "", &"x".repeat(200_000)),
        "/chunked" => reply("200 OK", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
        "/short" => reply("200 OK", "Content-Length: 10\r\n", "hello"),
        "/short-chunked" => reply("200 OK", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"),
        "/nothing" => String::new(),
        "/garbage" => "\u{1b}[31mSSH-2.0\r\n\r\n".to_owned(),
        "/stall" => return Reply::Stall(reply("200 OK", "Content-Length: 10\r\n", "hello")),
        "/silent" => return Reply::Stall(String::new()),
        "/drip" => return Reply::Drip(reply("200 OK", "Content-Length: 50000\r\n", ""), 1),
        "/on-demand" => return Reply::OnDemand(reply("200 OK", "Content-Length: 50000\r\n", "")),
        "/steady" => return Reply::Drip(reply("200 OK", "Content-Length: 5000\r\n", ""), 50),
        _ => match path.strip_prefix("/count/").and_then(|left| left.parse::<u32>().ok()) {
            Some(0) => reply("200 OK", "Content-Length: 5\r\n", "hello"),
            Some(left) => reply("301 Moved", &format!("Location: /count/{}\r\n", left - 1), ""),
            None => {
                let status = path.strip_prefix("/status/").unwrap_or("404 Not Found").replace('-', " ");
                reply(&status, "Content-Length: 0\r\n", "")
            }
        },
    })
}

pub(crate) fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n{body}")
}

/// Resolves the names that a test lists; a name with the answer `None` is never resolved.
#[derive(Default)]
pub(crate) struct Answers(HashMap<&'static str, Option<Vec<IpAddr>>>);

impl Answers {
    pub(crate) fn with(mut self, name: &'static str, addresses: &[&str]) -> Self {
        self.0.insert(name, Some(addresses.iter().map(|address| address.parse().unwrap()).collect()));
        self
    }

    pub(crate) fn without_end(mut self, name: &'static str) -> Self {
        self.0.insert(name, None);
        self
    }
}

impl Resolve for Answers {
    fn resolve(&self, name: Name) -> Resolving {
        let answer = self.0.get(name.as_str()).cloned();
        Box::pin(async move {
            match answer {
                Some(Some(addresses)) => {
                    Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
                }
                Some(None) => std::future::pending().await,
                None => Err("no such name".into()),
            }
        })
    }
}
