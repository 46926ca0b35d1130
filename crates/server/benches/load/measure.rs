//! Runs the same operation from many threads, and says how long each one took.

use std::{
    fs::File,
    io::Write as _,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use axum::{Router, routing::get};
use tokio::net::TcpListener;

use crate::{Failure, client::Client};

pub(crate) struct Figures {
    elapsed: Duration,
    /// One for each operation, sorted.
    latencies: Vec<Duration>,
}

impl Figures {
    pub(crate) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    pub(crate) fn summary(&self) -> String {
        let ms = |part: f64| {
            let last = self.latencies.len() - 1;
            self.latencies[(last as f64 * part) as usize].as_secs_f64() * 1_000.0
        };
        let rate = self.per_second();
        format!("{rate:8.0}/s  p50 {:7.3} ms  p99 {:7.3} ms  p99.9 {:7.3} ms", ms(0.5), ms(0.99), ms(0.999))
    }
}

/// Does `count` operations on `clients` threads; `prepare` makes the operation of one thread.
pub(crate) fn run<O: FnMut(usize) -> Result<(), Failure>>(
    clients: usize,
    count: usize,
    prepare: impl Fn(&Client) -> Result<O, Failure> + Sync,
) -> Result<Figures, Failure> {
    let next = AtomicUsize::new(0);
    let latencies = Mutex::new(Vec::with_capacity(count));
    let started = Instant::now();
    let work = || -> Result<(), Failure> {
        let mut operation = prepare(&Client)?;
        let mut own = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                break;
            }
            let begun = Instant::now();
            operation(i)?;
            own.push(begun.elapsed());
        }
        latencies.lock().map_err(|_| "a client panicked")?.extend(own);
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a client panicked")?)
    })?;
    let elapsed = started.elapsed();
    let mut latencies = latencies.into_inner().map_err(|_| "a client panicked")?;
    latencies.sort_unstable();
    Ok(Figures { elapsed, latencies })
}

/// What the disk allows: one small write and fsync after the other.
pub(crate) fn fsync_rate() -> Result<f64, Failure> {
    const ROUNDS: u32 = 200;
    let directory = tempfile::tempdir()?;
    let mut file = File::create(directory.path().join("file"))?;
    let started = Instant::now();
    for _ in 0..ROUNDS {
        file.write_all(&[0; 512])?;
        file.sync_all()?;
    }
    Ok(f64::from(ROUNDS) / started.elapsed().as_secs_f64())
}

/// What the HTTP library allows: a handler that answers 2 KB from memory.
pub(crate) async fn bare_handler_address() -> Result<SocketAddr, Failure> {
    static CONTENT: [u8; 2_048] = [b'x'; 2_048];
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/", get(async || CONTENT.as_slice()));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}
