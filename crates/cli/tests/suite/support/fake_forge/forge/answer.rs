//! What a forge answers with, and in which manner: also the wrong, the late and the endless ones.

use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::{io::Write as _, net::TcpStream, time::Duration};

use serde_json::{Value, json};

use crate::support::listening::Heard;

/// No wait of a test takes this long: one that would hang fails instead.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(crate) struct ForgeAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    manner: Manner,
}

#[derive(Clone)]
enum Manner {
    Whole,
    /// Announces more bytes than it sends, then closes.
    BrokenOff,
    /// Goes on without an announced length for as long as someone reads.
    Endless,
    /// Sends the head and half of the body, then says that it was asked and waits.
    Held(Arc<Barrier>),
    /// Only for requests that carry this token; 404 for all others.
    Private(String),
}

impl ForgeAnswer {
    pub(crate) fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/octet-stream".to_owned())];
        Self { status: 200, headers, body: bytes.into(), manner: Manner::Whole }
    }

    pub(crate) fn json(document: &Value) -> Self {
        Self::bytes(document.to_string()).with_header("content-type", "application/json; charset=utf-8")
    }

    pub(crate) fn html() -> Self {
        Self::bytes("<!DOCTYPE html>\n<html><title>Sign in</title></html>\n")
            .with_header("content-type", "text/html; charset=utf-8")
    }

    pub(crate) fn status(status: u16, message: &str) -> Self {
        Self { status, ..Self::json(&json!({ "message": message })) }
    }

    pub(crate) fn redirect(location: &str) -> Self {
        Self { status: 302, ..Self::bytes("") }.with_header("location", location)
    }

    pub(crate) fn broken_off(bytes: impl Into<Vec<u8>>) -> Self {
        Self { manner: Manner::BrokenOff, ..Self::bytes(bytes) }
    }

    pub(crate) fn endless() -> Self {
        Self { manner: Manner::Endless, ..Self::bytes("") }
    }

    pub(crate) fn private(self, token: &str) -> Self {
        Self { manner: Manner::Private(token.to_owned()), ..self }
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(held, _)| held != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Every request for it waits until the keeper opens the gate, once and for all.
    pub(crate) fn held(self) -> (Self, GateKeeper) {
        let (arrived, on_arrival) = mpsc::channel();
        let barrier = Arc::new(Barrier { arrived, open: Mutex::new(false), opened: Condvar::new() });
        let keeper = GateKeeper { arrived: on_arrival, barrier: Arc::clone(&barrier) };
        (Self { manner: Manner::Held(barrier), ..self }, keeper)
    }

    pub(super) fn missing() -> Self {
        Self::status(404, "Not Found")
    }

    /// Answers this request, each in its manner.
    pub(super) fn send(self, stream: &mut TcpStream, seen: &Heard) -> std::io::Result<()> {
        if let Manner::Private(token) = &self.manner
            && !carries(seen, token)
        {
            return Self::missing().send(stream, seen);
        }
        let length = match self.manner {
            Manner::Whole | Manner::Held(_) | Manner::Private(_) => Some(self.body.len()),
            Manner::BrokenOff => Some(self.body.len() + 1),
            Manner::Endless => None,
        };
        write!(stream, "HTTP/1.1 {} Answer\r\nconnection: close\r\n", self.status)?;
        for (name, value) in &self.headers {
            write!(stream, "{name}: {value}\r\n")?;
        }
        if let Some(length) = length {
            write!(stream, "content-length: {length}\r\n")?;
        }
        stream.write_all(b"\r\n")?;
        match self.manner {
            Manner::Whole | Manner::Private(_) | Manner::BrokenOff => stream.write_all(&self.body),
            Manner::Endless => loop {
                stream.write_all(&[b'0'; 64 * 1024])?;
            },
            Manner::Held(barrier) => {
                let (first, second) = self.body.split_at(self.body.len() / 2);
                stream.write_all(first)?;
                stream.flush()?;
                barrier.pass();
                stream.write_all(second)
            }
        }
    }
}

struct Barrier {
    arrived: mpsc::Sender<()>,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Barrier {
    fn pass(&self) {
        // A test that ended no longer listens.
        let _ = self.arrived.send(());
        let open = self.open.lock().expect("no panic");
        drop(self.opened.wait_while(open, |open| !*open).expect("no panic"));
    }

    fn open(&self) {
        *self.open.lock().expect("no panic") = true;
        self.opened.notify_all();
    }
}

/// The test's side of a held answer. A keeper that is dropped lets everyone through.
pub(crate) struct GateKeeper {
    arrived: mpsc::Receiver<()>,
    barrier: Arc<Barrier>,
}

impl GateKeeper {
    #[track_caller]
    pub(crate) fn await_request(&self) {
        self.arrived.recv_timeout(TIMEOUT).expect("the forge is asked");
    }

    pub(crate) fn open(&self) {
        self.barrier.open();
    }
}

impl Drop for GateKeeper {
    fn drop(&mut self) {
        self.barrier.open();
    }
}

pub(super) fn has_credentials(seen: &Heard) -> bool {
    let suspects = ["authorization", "proxy-authorization", "private-token", "job-token", "cookie"];
    suspects.iter().any(|name| seen.header(name).is_some())
}

/// Whether the token is there in one of the ways in which forges take it.
fn carries(seen: &Heard, token: &str) -> bool {
    let authorization = seen.header("authorization").and_then(|value| value.split_once(' '));
    let is_scheme = |scheme: &str| ["bearer", "token"].contains(&scheme.to_ascii_lowercase().as_str());
    authorization.is_some_and(|(scheme, rest)| rest == token && is_scheme(scheme))
        || seen.header("private-token") == Some(token)
}
