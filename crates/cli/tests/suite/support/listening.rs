//! What the servers of this suite have in common: a thread for each connection, and requests as they came.

use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::{io, io::BufRead as _, io::BufReader, io::Read as _, sync::Arc};

/// A request as a server heard it.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) method: String,
    pub(crate) target: String,
    /// The names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| *held == name).map(|(_, value)| value.as_str())
    }

    /// `None` where the client went away before it asked anything.
    fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        for line in reader.by_ref().lines() {
            match line? {
                line if line.is_empty() => break,
                line => head.push(line),
            }
        }
        let Some((first, fields)) = head.split_first() else { return Ok(None) };
        let fields = fields.iter().filter_map(|line| line.split_once(':'));
        let headers =
            fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        let mut words = first.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut heard = Self { method, target, headers, body: Vec::new() };
        let length = heard.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        reader.take(length).read_to_end(&mut heard.body)?;
        Ok(Some(heard))
    }
}

/// Answers each request in a thread of its own; where it listens. A client that goes away in the middle is no failure.
pub(crate) fn listen(
    address: impl ToSocketAddrs,
    answer: impl Fn(Heard, TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind(address).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || Heard::read(&stream)?.map_or(Ok(()), |heard| answer(heard, stream)));
        }
    });
    address
}
