//! Clients that listen to events while others submit. They read the events and discard them.

use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering};
use std::{net::SocketAddr, thread, thread::JoinHandle};

use futures_util::future::try_join_all;
use tokio::{io::AsyncReadExt as _, io::AsyncWriteExt as _, net::TcpStream, runtime::Builder, sync::watch};

use crate::{Failure, report::Grouped};

pub(crate) struct Listeners {
    thread: JoinHandle<Result<(), Failure>>,
    close: watch::Sender<bool>,
    count: usize,
    bytes: Arc<AtomicUsize>,
}

impl Listeners {
    /// Returns once all of them are connected.
    pub(crate) fn open(address: SocketAddr, count: usize, query: &str) -> Result<Self, Failure> {
        let request = format!("GET /v1/events?{query} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let (close, closed) = watch::channel(false);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let bytes = Arc::new(AtomicUsize::new(0));
        let received = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            Builder::new_current_thread().enable_io().build()?.block_on(async {
                let connects = (0..count).map(|_| connect(address, &request));
                let streams = try_join_all(connects).await?;
                ready.send(())?;
                let reads = streams.into_iter().map(|stream| read(stream, closed.clone(), &received));
                try_join_all(reads).await.map(drop)
            })
        });
        match is_ready.recv() {
            Ok(()) => Ok(Self { thread, close, count, bytes }),
            Err(_) => Err(thread.join().map_or_else(
                |_| "listeners panicked".into(),
                |ended| ended.err().unwrap_or_else(|| "there are no listeners".into()),
            )),
        }
    }

    pub(crate) fn close(self) -> Result<(), Failure> {
        let bytes = self.bytes.load(Ordering::Relaxed);
        eprintln!("{} listeners were sent {} bytes", Grouped(self.count), Grouped(bytes));
        self.close.send_replace(true);
        self.thread.join().map_err(|_| "listeners panicked")?
    }
}

/// Returns when the answer begins.
async fn connect(address: SocketAddr, request: &str) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut beginning = [0; 12];
    stream.read_exact(&mut beginning).await?;
    if beginning == *b"HTTP/1.1 200" {
        return Ok(stream);
    }
    Err(format!("not listened to: {}", String::from_utf8_lossy(&beginning)).into())
}

async fn read(
    mut stream: TcpStream,
    mut closed: watch::Receiver<bool>,
    bytes: &AtomicUsize,
) -> Result<(), Failure> {
    let mut buffer = vec![0; 16 * 1_024];
    loop {
        let count = tokio::select! {
            _ = closed.wait_for(|closed| *closed) => return Ok(()),
            read = stream.read(&mut buffer) => read?,
        };
        if count == 0 {
            return Err("a listener was let go".into());
        }
        bytes.fetch_add(count, Ordering::Relaxed);
    }
}
