//! A receiver of webhooks that fails in the ways that a test chooses, and remembers all that it was sent.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Condvar, Mutex};
use std::{collections::HashSet, net::SocketAddr, net::TcpStream, time::Duration, time::Instant};

use countersign_core::values::digest::Sha256;
use serde_json::Value;

use crate::support::listening::{Heard, listen};

/// Nothing takes this long: a test that would hang fails instead.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Manner {
    Accept,
    Fail(u16),
    /// Wants to be asked again after so many seconds.
    Busy(u16),
    /// Sends elsewhere, to a place on the same receiver.
    Redirect,
    /// Closes without a word.
    HangUp,
    /// Reads, and never answers.
    Silent,
}

#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) heard: Heard,
    was_accepted: bool,
    pub(crate) at: Instant,
}

impl Delivery {
    pub(crate) fn header(&self, name: &str) -> &str {
        let held = self.heard.header(&name.to_ascii_lowercase());
        held.unwrap_or_else(|| panic!("no {name} in {:?}", self.heard))
    }

    pub(crate) fn id(&self) -> &str {
        self.header("X-svc-Delivery")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.heard.body).expect("a JSON body")
    }

    /// Type, path and commit.
    pub(crate) fn event(&self) -> [String; 3] {
        let json = self.json();
        ["type", "path", "commit"].map(|field| json[field].as_str().expect("a string").to_owned())
    }

    /// What a receiver that knows the secret must see in the header.
    pub(crate) fn expected_signature(&self, secret: &str) -> String {
        let mut key = [0; 64];
        key[..secret.len()].copy_from_slice(secret.as_bytes());
        let pad = |with: u8| key.map(|byte| byte ^ with).to_vec();
        let inner = Sha256::of(&[pad(0x36), self.heard.body.clone()].concat());
        format!("sha256={}", Sha256::of(&[pad(0x5c), inner.as_bytes().to_vec()].concat()))
    }
}

struct Desk {
    manner: Manner,
    tries: Vec<Delivery>,
}

struct Shared {
    desk: Mutex<Desk>,
    changed: Condvar,
}

pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Receiver {
    pub(crate) fn start(manner: Manner) -> Self {
        Self::start_at("127.0.0.1:0".parse().expect("an address"), manner)
    }

    pub(crate) fn start_at(address: SocketAddr, manner: Manner) -> Self {
        let desk = Mutex::new(Desk { manner, tries: Vec::new() });
        let shared = Arc::new(Shared { desk, changed: Condvar::new() });
        let of_threads = Arc::clone(&shared);
        let address = listen(address, move |heard, stream| answer(heard, stream, &of_threads));
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn behave(&self, manner: Manner) {
        self.shared.desk.lock().expect("no panic").manner = manner;
    }

    /// All that was sent, accepted or not.
    pub(crate) fn tries(&self) -> Vec<Delivery> {
        self.shared.desk.lock().expect("no panic").tries.clone()
    }

    pub(crate) fn accepted(&self) -> Vec<Delivery> {
        self.tries().into_iter().filter(|delivery| delivery.was_accepted).collect()
    }

    /// Waits until so many deliveries were accepted.
    #[track_caller]
    pub(crate) fn await_accepted(&self, count: usize) -> Vec<Delivery> {
        self.wait_until(|tries| tries.iter().filter(|delivery| delivery.was_accepted).count() >= count);
        self.accepted()
    }

    /// Waits until so many different deliveries were accepted.
    #[track_caller]
    pub(crate) fn await_distinct(&self, count: usize) -> Vec<Delivery> {
        self.wait_until(|tries| {
            let accepted = tries.iter().filter(|delivery| delivery.was_accepted);
            accepted.map(Delivery::id).collect::<HashSet<_>>().len() >= count
        });
        self.accepted()
    }

    /// Waits until there were so many tries since the start.
    #[track_caller]
    pub(crate) fn await_total(&self, count: usize) -> Vec<Delivery> {
        self.wait_until(|tries| tries.len() >= count);
        self.tries()
    }

    /// Waits for so many tries from now on.
    #[track_caller]
    pub(crate) fn await_tries(&self, count: usize) {
        let before = self.tries().len();
        self.wait_until(|tries| tries.len() >= before + count);
    }

    #[track_caller]
    fn wait_until(&self, is_enough: impl Fn(&[Delivery]) -> bool) {
        let desk = self.shared.desk.lock().expect("no panic");
        let waited = self.shared.changed.wait_timeout_while(desk, TIMEOUT, |desk| !is_enough(&desk.tries));
        let (desk, waited) = waited.expect("no panic");
        assert!(!waited.timed_out(), "only these came: {:?}", desk.tries);
    }
}

fn answer(heard: Heard, mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    assert_eq!(heard.method, "POST", "{heard:?}");
    let manner = {
        let mut desk = shared.desk.lock().expect("no panic");
        let was_accepted = desk.manner == Manner::Accept;
        desk.tries.push(Delivery { heard, was_accepted, at: Instant::now() });
        shared.changed.notify_all();
        desk.manner
    };
    let end = "content-length: 0\r\nconnection: close\r\n\r\n";
    match manner {
        Manner::Accept => write!(stream, "HTTP/1.1 204 Thanks\r\nconnection: close\r\n\r\n"),
        Manner::Fail(status) => write!(stream, "HTTP/1.1 {status} No\r\n{end}"),
        Manner::Busy(seconds) => write!(stream, "HTTP/1.1 503 Busy\r\nretry-after: {seconds}\r\n{end}"),
        Manner::Redirect => write!(stream, "HTTP/1.1 307 There\r\nlocation: /elsewhere\r\n{end}"),
        Manner::HangUp => Ok(()),
        Manner::Silent => stream.read_to_end(&mut Vec::new()).map(drop),
    }
}
