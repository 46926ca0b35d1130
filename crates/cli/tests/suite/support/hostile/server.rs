//! The server that lies.

use std::io::{Read as _, Write as _};
use std::{net::SocketAddr, net::TcpStream, sync::Arc, sync::Mutex, time::Duration};

use countersign_api::error_code::ErrorCode;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

use super::state::compose as compose_state;
use crate::support::{http, http::Request, listening::Heard, listening::listen, server::TestServer};

const DRIP: Duration = Duration::from_millis(200);

/// A request as the server got it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Without percent-encoding.
    pub(crate) path: String,
    pub(crate) body: String,
    target: String,
    headers: Vec<(String, String)>,
}

#[derive(Clone)]
pub(crate) enum Lie {
    Answer {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// A body of zeros without an announced length, for as long as someone reads.
    Endless,
    /// Headers, for as long as someone reads.
    EndlessHead,
    /// A byte now and then, never the last one.
    Dripping,
    /// Closes without a word.
    HungUp,
    /// Passes the request on, and keeps the answer to itself.
    Swallowed,
    /// Announces more bytes than it sends, then closes.
    BrokenOff(Vec<u8>),
    /// The beginning of a journal, then nothing more, or the end of the connection.
    HalfJournal(Vec<u8>, AfterHalf),
}

#[derive(Clone, Copy)]
pub(crate) enum AfterHalf {
    /// Answers nothing for as long as the other side waits.
    Silence,
    End,
}

impl Lie {
    pub(crate) fn bytes(body: impl Into<Vec<u8>>) -> Self {
        Self::Answer { status: 200, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::bytes(body.to_string())
    }

    pub(crate) fn error(status: u16, message: &str) -> Self {
        Self::Answer { status, headers: Vec::new(), body: json!({ "error": message }).to_string().into() }
    }

    /// An error with a code, and its status.
    pub(crate) fn refusal(code: ErrorCode, message: &str) -> Self {
        let body = json!({ "error": message, "code": code.name() });
        Self::Answer { status: code.status(), headers: Vec::new(), body: body.to_string().into() }
    }

    pub(crate) fn journal(body: impl Into<Vec<u8>>) -> Self {
        Self::bytes(body).with_header("content-type", "application/x-git-fast-import")
    }

    pub(crate) fn missing() -> Self {
        Self::error(404, "File not found")
    }

    pub(crate) fn redirect(status: u16, location: &str) -> Self {
        Self::Answer { status, headers: Vec::new(), body: Vec::new() }.with_header("location", location)
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

type Choice = Box<dyn Fn(&Asked) -> Option<Lie> + Send>;

#[derive(Default)]
struct Desk {
    /// The newest is asked first.
    lies: Vec<Choice>,
    asked: Vec<Asked>,
    /// What happens before the request with this number is passed on, counted from 1.
    event: Option<(usize, Box<dyn FnOnce() + Send>)>,
    /// What stands in the place of every `error` of the honest server.
    words: Option<String>,
}

pub(crate) struct HostileServer {
    address: SocketAddr,
    desk: Arc<Mutex<Desk>>,
}

impl HostileServer {
    /// Honest until it is told to lie.
    pub(crate) fn before(honest: &TestServer) -> Self {
        Self::start(Some(honest.address()))
    }

    /// Has nothing but lies: whatever it is not told to show is not there.
    pub(crate) fn alone() -> Self {
        Self::start(None)
    }

    fn start(honest: Option<SocketAddr>) -> Self {
        let desk = Arc::new(Mutex::new(Desk::default()));
        let shared = Arc::clone(&desk);
        let answer = move |heard, stream| answer(Asked::of(heard), stream, honest, &shared);
        let address = listen("127.0.0.1:0", answer);
        Self { address, desk }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn lie(&self, choose: impl Fn(&Asked) -> Option<Lie> + Send + 'static) {
        self.desk.lock().expect("no panic").lies.push(Box::new(choose));
    }

    /// The world changes before the request with this number, counted from 1, is passed on.
    pub(crate) fn before_request(&self, number: usize, event: impl FnOnce() + Send + 'static) {
        self.desk.lock().expect("no panic").event = Some((number, Box::new(event)));
    }

    /// Tells every error of the honest server in these words, and changes nothing else in it.
    pub(crate) fn reword(&self, words: &str) {
        self.desk.lock().expect("no panic").words = Some(words.to_owned());
    }

    /// From now on the truth again.
    pub(crate) fn be_honest(&self) {
        self.desk.lock().expect("no panic").lies.clear();
    }

    /// The answer for one path, whatever the method and the question behind it.
    pub(crate) fn answer(&self, path: &str, lie: Lie) {
        let path = path.to_owned();
        let is_at = move |asked: &Asked| asked.path == path || asked.path.split('?').next() == Some(&path);
        self.lie(move |asked| is_at(asked).then(|| lie.clone()));
    }

    pub(crate) fn show_file(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.answer(&format!("/v1/files/{path}"), Lie::bytes(content));
    }

    pub(crate) fn hide_file(&self, path: &str) {
        self.answer(&format!("/v1/files/{path}"), Lie::missing());
    }

    pub(crate) fn show_chain(&self, path: &str, history: &Value) {
        self.answer(&format!("/v1/get_signers_chain/{path}"), Lie::json(&json!({ "history": history })));
    }

    /// Everything that the signer of a signers file signs.
    pub(crate) fn show_proposal(&self, path: &str, file: &[u8], metadata: &[u8]) {
        self.show_file(path, file);
        self.show_file(&format!("{path}.metadata.json"), metadata);
    }

    /// The history of a project, the same wherever it is asked for: for `index` too.
    pub(crate) fn show_history(&self, project: &str, index: &str, history: &Value) {
        self.show_file(&format!("{project}/svc.signers.history.json"), history.to_string());
        self.show_chain(index, history);
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.desk.lock().expect("no panic").asked.clone()
    }

    /// The bodies of everything that was more than a question.
    pub(crate) fn posts(&self) -> Vec<String> {
        self.asked().into_iter().filter(|asked| asked.method != "GET").map(|asked| asked.body).collect()
    }
}

/// The threads that serve outlive the test. What they were told must not: it may hold a world, whose server would never
/// end.
impl Drop for HostileServer {
    fn drop(&mut self) {
        let told = self.desk.lock().map(|mut desk| std::mem::take(&mut *desk));
        drop(told);
    }
}

fn answer(
    asked: Asked,
    mut stream: TcpStream,
    honest: Option<SocketAddr>,
    desk: &Mutex<Desk>,
) -> std::io::Result<()> {
    let event = {
        let mut desk = desk.lock().expect("no panic");
        desk.asked.push(asked.clone());
        let number = desk.asked.len();
        desk.event.take_if(|(due, _)| *due == number)
    };
    if let Some((_, happen)) = event {
        happen();
    }
    match (choose(desk, &asked), honest) {
        (Some(Lie::Swallowed), Some(honest)) => http::try_send(honest, &asked.to_request()).map(drop),
        (Some(lie), _) => lie.send(&mut stream),
        (None, _) if is_lied_about(desk, honest, &asked) => compose(desk, honest, &asked).send(&mut stream),
        (None, None) => Lie::missing().send(&mut stream),
        (None, Some(honest)) => {
            let mut reply = http::try_send(honest, &asked.to_request())?;
            if let (true, Some(words)) = (reply.status >= 400, &desk.lock().expect("no panic").words) {
                let mut body = reply.json();
                assert!(body["error"].is_string(), "{body}");
                body["error"] = json!(words);
                reply.body = body.to_string().into_bytes();
            }
            let is_told = |name: &str| name.starts_with("x-svc-") || name == "content-type";
            let headers = reply.headers.into_iter().filter(|(name, _)| is_told(name)).collect();
            Lie::Answer { status: reply.status, headers, body: reply.body }.send(&mut stream)
        }
    }
}

fn choose(desk: &Mutex<Desk>, asked: &Asked) -> Option<Lie> {
    desk.lock().expect("no panic").lies.iter().rev().find_map(|choose| choose(asked))
}

const STATE: &str = "/v1/state/";

/// A liar puts the state together from what it shows of each file.
fn is_lied_about(desk: &Mutex<Desk>, honest: Option<SocketAddr>, asked: &Asked) -> bool {
    let has_lies = honest.is_none() || !desk.lock().expect("no panic").lies.is_empty();
    asked.path.starts_with(STATE) && has_lies
}

fn compose(desk: &Mutex<Desk>, honest: Option<SocketAddr>, asked: &Asked) -> Lie {
    let ask = |path: &str| {
        let target = utf8_percent_encode(path, TARGET).to_string();
        let question = Asked { path: path.to_owned(), target, ..asked.clone() };
        match (choose(desk, &question), honest) {
            (Some(Lie::Answer { status, body, .. }), _) => (status, body),
            (Some(_), _) | (None, None) => (404, Vec::new()),
            (None, Some(honest)) => {
                let reply = http::try_send(honest, &question.to_request());
                reply.map_or((502, Vec::new()), |reply| (reply.status, reply.body))
            }
        }
    };
    match compose_state(&ask, &asked.path[STATE.len()..]) {
        Some(body) => Lie::bytes(body),
        None => Lie::missing(),
    }
}

/// What a target is written with.
const TARGET: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'"').add(b'<').add(b'>').add(b'#').add(b'+');

impl Asked {
    fn of(Heard { method, target, headers, body }: Heard) -> Self {
        let path = percent_decode_str(&target).decode_utf8_lossy().into_owned();
        Self { method, path, body: String::from_utf8_lossy(&body).into_owned(), target, headers }
    }

    fn to_request(&self) -> Request {
        let method = if self.method == "POST" { "POST" } else { "GET" };
        let request = Request::new(method, &self.target).with_body(self.body.clone());
        let signed = self.headers.iter().filter(|(name, _)| name.starts_with("x-svc-"));
        signed.fold(request, |request, (name, value)| request.with_header(name, value))
    }
}

impl Lie {
    fn send(self, stream: &mut TcpStream) -> std::io::Result<()> {
        match self {
            Self::Answer { status, headers, body } => {
                write!(stream, "HTTP/1.1 {status} Answer\r\nconnection: close\r\n")?;
                for (name, value) in &headers {
                    write!(stream, "{name}: {value}\r\n")?;
                }
                write!(stream, "content-length: {}\r\n\r\n", body.len())?;
                stream.write_all(&body)
            }
            Self::Endless => {
                write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
                loop {
                    stream.write_all(&[b'0'; 64 * 1024])?;
                }
            }
            Self::EndlessHead => {
                write!(stream, "HTTP/1.1 200 OK\r\n")?;
                loop {
                    write!(stream, "x-more: {}\r\n", "0".repeat(8 * 1024))?;
                }
            }
            Self::Dripping => {
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\nconnection: close\r\n\r\n")?;
                loop {
                    stream.write_all(b" ")?;
                    std::thread::sleep(DRIP);
                }
            }
            Self::HungUp | Self::Swallowed => Ok(()),
            Self::HalfJournal(bytes, after) => {
                let announced = bytes.len() + 1;
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/x-git-fast-import\r\ncontent-length: {announced}\r\n\
                     connection: close\r\n\r\n"
                )?;
                stream.write_all(&bytes)?;
                match after {
                    AfterHalf::End => Ok(()),
                    AfterHalf::Silence => stream.read(&mut [0]).map(drop),
                }
            }
            Self::BrokenOff(bytes) => {
                let announced = bytes.len() + 1;
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-length: {announced}\r\nconnection: close\r\n\r\n"
                )?;
                stream.write_all(&bytes)
            }
        }
    }
}
