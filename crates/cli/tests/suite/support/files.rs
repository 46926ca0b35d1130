//! A file server whose answers a test chooses: also the wrong, the late and the endless ones.

use std::sync::{Arc, Mutex, mpsc};
use std::{collections::HashMap, io::Write as _, net::SocketAddr, net::TcpStream};

use crate::support::listening::{Heard, listen};

#[derive(Clone)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    Status(u16),
    Redirect(String),
    /// Announces more bytes than it sends, then closes.
    BrokenOff(Vec<u8>),
    /// Closes without a word.
    HungUp,
    /// Zeros without an announced length, for as long as someone reads.
    Endless,
    /// Says that it was asked, then waits until it is released.
    Held(Arc<Gate>, Vec<u8>),
}

/// Both ends of a wait, without a clock: the server announces a request, the test lets it go on.
pub(crate) struct Gate {
    arrived: mpsc::Sender<()>,
    released: Mutex<mpsc::Receiver<()>>,
}

/// The test's side of a `Gate`.
pub(crate) struct Keeper {
    arrived: mpsc::Receiver<()>,
    released: mpsc::Sender<()>,
}

impl Keeper {
    pub(crate) fn await_request(&self) {
        self.arrived.recv().expect("the file server is asked");
    }

    pub(crate) fn release(&self) {
        self.released.send(()).expect("the file server waits");
    }
}

impl Answer {
    pub(crate) fn held(bytes: impl Into<Vec<u8>>) -> (Self, Keeper) {
        let (arrived, on_arrival) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let gate = Gate { arrived, released: Mutex::new(released) };
        (Self::Held(Arc::new(gate), bytes.into()), Keeper { arrived: on_arrival, released: release })
    }
}

#[derive(Default)]
struct Shelf {
    answers: HashMap<String, Answer>,
    asked: Vec<String>,
}

/// A clone is the same server.
#[derive(Clone)]
pub(crate) struct FileServer {
    address: SocketAddr,
    shelf: Arc<Mutex<Shelf>>,
}

impl FileServer {
    pub(crate) fn start() -> Self {
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        let shared = Arc::clone(&shelf);
        let address = listen("127.0.0.1:0", move |heard, stream| answer(heard, stream, &shared));
        Self { address, shelf }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The directory in the repository that stands for a directory of this server.
    pub(crate) fn mirror_path(&self, path: &str) -> String {
        format!("http/127.0.0.1/{}{path}", self.port())
    }

    pub(crate) fn set(&self, path: &str, answer: Answer) {
        self.shelf.lock().expect("no panic").answers.insert(path.to_owned(), answer);
    }

    pub(crate) fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.set(path, Answer::Bytes(bytes.into()));
    }

    /// The request targets so far, as they were sent.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.shelf.lock().expect("no panic").asked.clone()
    }
}

fn answer(heard: Heard, mut stream: TcpStream, shelf: &Mutex<Shelf>) -> std::io::Result<()> {
    let answer = {
        let mut shelf = shelf.lock().expect("no panic");
        let answer = shelf.answers.get(&heard.target).cloned();
        shelf.asked.push(heard.target);
        answer
    };
    match answer.unwrap_or(Answer::Status(404)) {
        Answer::Bytes(bytes) => send(&mut stream, "200 OK", "x-kind: file", &bytes),
        Answer::Status(status) => send(&mut stream, &format!("{status} No"), "x-kind: error", b"no"),
        Answer::Redirect(location) => send(&mut stream, "302 Found", &format!("location: {location}"), b""),
        Answer::BrokenOff(bytes) => {
            let announced = bytes.len() + 1;
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {announced}\r\nconnection: close\r\n\r\n")?;
            stream.write_all(&bytes)
        }
        Answer::HungUp => Ok(()),
        Answer::Endless => {
            write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[b'0'; 64 * 1024])?;
            }
        }
        Answer::Held(gate, bytes) => {
            // A test that ended no longer waits for this request.
            let _ = gate.arrived.send(());
            let _ = gate.released.lock().expect("no panic").recv();
            send(&mut stream, "200 OK", "x-kind: file", &bytes)
        }
    }
}

fn send(stream: &mut TcpStream, status: &str, header: &str, bytes: &[u8]) -> std::io::Result<()> {
    let length = bytes.len();
    write!(stream, "HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")?;
    stream.write_all(bytes)
}
