//! A blocking HTTP/1.1 client that sends the request target byte for byte: nothing tidies up an attack.

use std::{io::Read as _, io::Write as _, net::SocketAddr, net::TcpStream, time::Duration};

use countersign_api::error_code::ErrorCode;
use serde_json::Value;

/// No answer takes this long: a test that would hang fails instead.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) target: Vec<u8>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Sends the body in chunks, so that its length is not announced.
    pub(crate) chunked: bool,
}

impl Request {
    pub(crate) fn new(method: &'static str, target: impl AsRef<[u8]>) -> Self {
        let target = target.as_ref().to_vec();
        Self { method, target, headers: Vec::new(), body: Vec::new(), chunked: false }
    }

    pub(crate) fn get(target: impl AsRef<[u8]>) -> Self {
        Self::new("GET", target)
    }

    pub(crate) fn head(target: impl AsRef<[u8]>) -> Self {
        Self::new("HEAD", target)
    }

    pub(crate) fn post(target: impl AsRef<[u8]>, body: &Value) -> Self {
        Self::new("POST", target).with_body(body.to_string())
    }

    pub(crate) fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Announces a body of this length, whatever is sent.
    pub(crate) fn announcing(self, length: usize) -> Self {
        self.with_header("content-length", &length.to_string())
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(held, _)| !held.eq_ignore_ascii_case(name));
        self
    }

    /// Gives one header another value. The signature stays what it was.
    pub(crate) fn replace_header(self, name: &str, value: &str) -> Self {
        self.without_header(name).with_header(name, value)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let held = self.headers.iter().find(|(held, _)| held.eq_ignore_ascii_case(name));
        &held.expect("the header was set").1
    }

    pub(super) fn head_bytes(&self) -> Vec<u8> {
        let mut head = [self.method.as_bytes(), b" ", &self.target, b" HTTP/1.1\r\n"].concat();
        head.extend(b"host: localhost\r\nconnection: close\r\n");
        for (name, value) in &self.headers {
            head.extend(format!("{name}: {value}\r\n").bytes());
        }
        let is_announced = self.headers.iter().any(|(name, _)| name == "content-length");
        if self.chunked {
            head.extend(b"transfer-encoding: chunked\r\n");
        } else if !is_announced && (!self.body.is_empty() || self.method == "POST") {
            head.extend(format!("content-length: {}\r\n", self.body.len()).bytes());
        }
        head.extend(b"\r\n");
        head
    }

    fn body_bytes(&self) -> Vec<u8> {
        if !self.chunked {
            return self.body.clone();
        }
        let mut framed = Vec::new();
        for chunk in self.body.chunks(64 * 1024) {
            framed.extend(format!("{:x}\r\n", chunk.len()).bytes());
            framed.extend(chunk);
            framed.extend(b"\r\n");
        }
        framed.extend(b"0\r\n\r\n");
        framed
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let held = self.headers.iter().find(|(held, _)| held.eq_ignore_ascii_case(name));
        held.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body of a success, as JSON.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let json = serde_json::from_slice(&self.body);
        let json =
            json.unwrap_or_else(|_| panic!("{} with a body that is no JSON: {}", self.status, self.text()));
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.text());
        json
    }

    /// The message of an error answer, whose form is checked: status, type, a sentence, and a code of that status (D30,
    /// D230).
    #[track_caller]
    pub(crate) fn error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        let json = self.json();
        let fields = json.as_object().expect("an error body is an object");
        assert_eq!(fields.len(), 2, "an error body has `error` and `code`, and nothing else: {json}");
        let code = json["code"].as_str().expect("`code` is a string");
        let code = ErrorCode::parse(code).unwrap_or_else(|| panic!("`{code}` is not a code"));
        assert_eq!(code.status(), status, "{json}");
        let message = json["error"].as_str().expect("`error` is a string").to_owned();
        assert!(!message.is_empty() && !message.contains("panicked"), "{message}");
        message
    }

    /// Checks an error as `error` does, with words that the message must contain.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, words: &str) {
        let message = self.error(status);
        assert!(message.contains(words), "`{words}` is missing in: {message}");
    }
}

/// One request over its own connection.
pub(crate) fn send(address: SocketAddr, request: &Request) -> Reply {
    try_send(address, request).unwrap_or_else(|error| panic!("no answer: {error}"))
}

/// Sends a request as `send` does, to a server that may be gone.
pub(crate) fn try_send(address: SocketAddr, request: &Request) -> std::io::Result<Reply> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut writer = stream.try_clone()?;
    let (head, body) = (request.head_bytes(), request.body_bytes());
    let mut received = Vec::new();
    std::thread::scope(|scope| {
        // A server that refuses early closes while we still write; its answer counts, not our broken pipe.
        scope.spawn(move || writer.write_all(&head).and_then(|()| writer.write_all(&body)));
        stream
            .read_to_end(&mut received)
            .or_else(|error| if received.is_empty() { Err(error) } else { Ok(0) })
    })?;
    parse_reply(&received)
        .ok_or_else(|| std::io::Error::other(format!("not HTTP: {:?}", String::from_utf8_lossy(&received))))
}

/// A connection that stays open from one request to the next.
pub(crate) struct Connection {
    stream: TcpStream,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout above 0");
        Self { stream }
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("the server reads");
    }

    /// The status of the next answer, of which nothing else is read but its head.
    pub(crate) fn read_head(&mut self) -> u16 {
        self.read_heading().status
    }

    fn read_heading(&mut self) -> Reply {
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n\r\n") {
            received.push(self.read_byte());
        }
        parse_reply(&received).expect("an answer")
    }

    /// The next answer, which must announce its length.
    pub(crate) fn read_reply(&mut self) -> Reply {
        let mut reply = self.read_heading();
        let length = reply.header("content-length").expect("a length").parse().expect("a number");
        reply.body = vec![0; length];
        self.stream.read_exact(&mut reply.body).expect("the server answers");
        reply
    }

    /// What the server still says before it closes the connection.
    pub(crate) fn read_to_end(&mut self) -> String {
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest).expect("the server closes the connection");
        rest
    }

    fn read_byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).expect("the server answers");
        byte[0]
    }
}

pub(super) fn parse_reply(received: &[u8]) -> Option<Reply> {
    let end = received.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&received[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut reply = Reply { status, headers, body: received[end + 4..].to_vec() };
    if reply.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        reply.body = join_chunks(&reply.body)?;
    }
    Some(reply)
}

fn join_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while !rest.is_empty() {
        let end = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        if size == 0 {
            break;
        }
        body.extend(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 2 + size + 2..)?;
    }
    Some(body)
}
