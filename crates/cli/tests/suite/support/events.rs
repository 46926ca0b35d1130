//! A client of the stream of events that reads every byte itself.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::{net::SocketAddr, net::TcpStream, time::Duration, time::Instant};

use serde_json::Value;

use super::http::{Reply, Request, parse_reply};

/// Longer than any event takes, and than the time between two signs of life.
const TIMEOUT: Duration = Duration::from_secs(40);

/// What stands between two empty lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Block {
    pub(crate) kind: Option<String>,
    pub(crate) data: Option<Value>,
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) comments: usize,
}

/// The answer to a request for events, which has no end.
pub(crate) struct EventStream<S = TcpStream> {
    pub(crate) head: Reply,
    stream: BufReader<S>,
    text: String,
}

impl EventStream {
    #[track_caller]
    pub(crate) fn open(address: SocketAddr, request: &Request) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout above 0");
        let mut events = Self::over(stream, request);
        assert_eq!(events.head.status, 200, "{}", events.head.text());
        // What comes first says that everything from now on will be told.
        let first = events.next_block().expect("the stream has begun");
        assert_eq!((first.comments, first.data, first.retry.as_deref()), (1, None, Some("2000")));
        events
    }

    #[track_caller]
    pub(crate) fn at(address: SocketAddr, target: &str) -> Self {
        Self::open(address, &Request::get(target))
    }
}

impl<S: Read + Write> EventStream<S> {
    /// Sends a request, and reads the head of the answer.
    pub(crate) fn over(mut stream: S, request: &Request) -> Self {
        stream.write_all(&request.head_bytes()).expect("the server reads");
        let mut stream = BufReader::new(stream);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert!(stream.read_until(b'\n', &mut head).expect("the server answers") > 0, "{head:?}");
        }
        Self { head: parse_reply(&head).expect("an answer"), stream, text: String::new() }
    }

    /// `None` at the end of the stream, which must be an orderly one.
    #[track_caller]
    pub(crate) fn next_block(&mut self) -> Option<Block> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = Block::parse(block);
                self.text = rest.to_owned();
                return Some(block);
            }
            let chunk = self.read_chunk();
            if chunk.is_empty() {
                assert_eq!(self.text, "", "the stream ends inside an event");
                return None;
            }
            self.text.push_str(&String::from_utf8(chunk).expect("UTF-8"));
        }
    }

    /// The next block with an event in it.
    #[track_caller]
    pub(crate) fn next_event(&mut self) -> Block {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // Signs of life go on for ever.
            assert!(Instant::now() < deadline, "nothing happens");
            let block = self.next_block().expect("the stream goes on");
            if block.data.is_some() {
                return block;
            }
        }
    }

    /// The next events by their kinds.
    #[track_caller]
    pub(crate) fn next_kinds<const N: usize>(&mut self) -> [String; N] {
        std::array::from_fn(|_| self.next_event().kind.expect("an event has a kind"))
    }

    fn read_chunk(&mut self) -> Vec<u8> {
        let mut size = String::new();
        self.stream.read_line(&mut size).expect("the stream goes on");
        let size = usize::from_str_radix(size.trim_end(), 16).expect("the size of a chunk");
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).expect("a whole chunk");
        assert_eq!(chunk.split_off(size), b"\r\n");
        chunk
    }
}

impl Block {
    #[track_caller]
    fn parse(text: &str) -> Self {
        let mut block = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("no field: {line:?}"));
            let given = match name {
                "" => {
                    block.comments += 1;
                    None
                }
                "event" => block.kind.replace(value.to_owned()),
                "data" => {
                    let data = serde_json::from_str(value).expect("data is JSON");
                    block.data.replace(data).map(|_| String::new())
                }
                "id" => block.id.replace(value.to_owned()),
                "retry" => block.retry.replace(value.to_owned()),
                _ => panic!("an unknown field: {line:?}"),
            };
            assert_eq!(given, None, "a field is there twice: {text:?}");
        }
        block
    }
}
