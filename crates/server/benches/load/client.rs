//! The load: prepared requests over connections that stay open, with as little work as possible.
//!
//! One thread serves many connections. Switching between a thread for each would cost more than the requests.

use std::net::{SocketAddr, TcpStream as StdStream};
use std::{sync::atomic::AtomicUsize, sync::atomic::Ordering, thread, time::Duration, time::Instant};

use futures_util::future::try_join_all;
use tokio::{io::AsyncReadExt as _, io::AsyncWriteExt as _, net::TcpStream, runtime::Builder};

use crate::Failure;

/// One request, head and body.
pub(crate) type Request = Vec<u8>;

#[derive(Default)]
pub(crate) struct Figures {
    elapsed: Duration,
    /// One for each request, sorted.
    latencies: Vec<Duration>,
    /// The bytes of all answers, with their heads.
    bytes: usize,
}

impl Figures {
    /// Adds the figures of another measurement.
    pub(crate) fn add(&mut self, other: Figures) {
        self.elapsed += other.elapsed;
        self.latencies.extend(other.latencies);
        self.latencies.sort_unstable();
        self.bytes += other.bytes;
    }

    pub(crate) fn count(&self) -> usize {
        self.latencies.len()
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The longest time within this part of the requests.
    pub(crate) fn percentile_ms(&self, part: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let latency = self.latencies.get((last as f64 * part).round() as usize);
        latency.map_or(0.0, |latency| latency.as_secs_f64() * 1_000.0)
    }

    pub(crate) fn bytes_per_answer(&self) -> usize {
        self.bytes / self.latencies.len().max(1)
    }
}

/// Sends each request once, from so many clients. Each client waits for an answer before its next request. Any answer
/// but 200 is an error.
pub(crate) fn drive(address: SocketAddr, clients: usize, requests: &[Request]) -> Result<Figures, Failure> {
    // The server has the other half of the processors.
    let threads = (thread::available_parallelism()?.get() / 2).clamp(1, clients);
    let mut shares: Vec<Vec<StdStream>> = (0..threads).map(|_| Vec::new()).collect();
    for client in 0..clients {
        let stream = StdStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        shares[client % threads].push(stream);
    }
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    let work = |share: Vec<StdStream>| -> Result<Vec<Done>, Failure> {
        Builder::new_current_thread().enable_io().build()?.block_on(async {
            try_join_all(share.into_iter().map(|stream| work_off(stream, requests, &next))).await
        })
    };
    let done = thread::scope(|scope| {
        let threads: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| work(share))).collect();
        let done: Result<Vec<_>, Failure> =
            threads.into_iter().map(|thread| thread.join().map_err(|_| "a client panicked")?).collect();
        done
    })?;
    let elapsed = started.elapsed();
    let done: Vec<Done> = done.into_iter().flatten().collect();
    let bytes = done.iter().map(|done| done.bytes).sum();
    let mut latencies: Vec<Duration> = done.into_iter().flat_map(|done| done.latencies).collect();
    latencies.sort_unstable();
    Ok(Figures { elapsed, latencies, bytes })
}

/// The body of one answer.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> Result<String, Failure> {
    Builder::new_current_thread().enable_io().build()?.block_on(async {
        let mut connection = Connection::new(TcpStream::connect(address).await?);
        let received = connection.exchange(request).await?;
        let text = std::str::from_utf8(&connection.buffer[..received])?;
        Ok(text.split_once("\r\n\r\n").map_or(text, |(_, body)| body).to_owned())
    })
}

#[derive(Default)]
struct Done {
    latencies: Vec<Duration>,
    bytes: usize,
}

async fn work_off(stream: StdStream, requests: &[Request], next: &AtomicUsize) -> Result<Done, Failure> {
    let mut connection = Connection::new(TcpStream::from_std(stream)?);
    let mut done = Done::default();
    while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
        let begun = Instant::now();
        done.bytes += connection.exchange(request).await?;
        done.latencies.push(begun.elapsed());
    }
    Ok(done)
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: vec![0; 16 * 1_024] }
    }

    /// Returns the length of the answer, which is in the buffer.
    async fn exchange(&mut self, request: &[u8]) -> Result<usize, Failure> {
        self.stream.write_all(request).await?;
        let (mut received, mut length) = (0, None);
        loop {
            received += match self.stream.read(&mut self.buffer[received..]).await? {
                0 => return Err("the connection was closed".into()),
                count => count,
            };
            if length.is_none() {
                length = answer_length(&self.buffer[..received])?;
            }
            if length.is_some_and(|length| received >= length) {
                break;
            }
            if received == self.buffer.len() {
                self.buffer.resize(2 * received, 0);
            }
        }
        if self.buffer.starts_with(b"HTTP/1.1 200 ") {
            return Ok(received);
        }
        Err(String::from_utf8_lossy(&self.buffer[..received]).into())
    }
}

/// Head and body together; `None` while the head is incomplete. It reads the head once, so that the longer heads of the
/// server do not cost the load more than the server.
fn answer_length(answer: &[u8]) -> Result<Option<usize>, Failure> {
    let (mut end, mut length) = (0, None);
    for line in answer.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        if let Some(value) = line.strip_prefix(b"content-length: ") {
            length = Some(std::str::from_utf8(value)?.trim_end().parse::<usize>()?);
        } else if line == b"\r\n" {
            return Ok(Some(end + length.ok_or("an answer without content-length")?));
        }
    }
    Ok(None)
}
