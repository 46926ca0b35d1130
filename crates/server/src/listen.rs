//! Connections: accepting them, bounding them, and ending them.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, response::Response};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{rt::TokioIo, server::graceful::GracefulShutdown};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};

use crate::answer::{Asked, answer};

/// A client that has not sent its next request's head by then is dropped; so is one that sends nothing, or takes nothing
/// of an answer for so long. It may be longer by the time between two looks.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(15);
const LOOKS: u32 = 5;
const MAX_CONNECTIONS: usize = 8_192;
/// After a failure to accept, which is mostly a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stopped` holds true or has no sender any more; then finishes the requests under way.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    read: impl Fn(Asked<'_>) -> Option<Response> + Clone + Send + Sync + 'static,
    mut stopped: watch::Receiver<bool>,
) {
    let connections = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut http = http1::Builder::new();
    // Hyper's own limit sets a timer for each request, which costs as much as some answers do; `Patience` sets one for
    // each connection.
    http.header_read_timeout(None);
    loop {
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let patience = Arc::new(Patience::default());
        let waiting = Arc::clone(&patience);
        // One count for each connection: threads that share one for all requests would wait for each other's caches.
        let shared = Arc::new((router.clone(), read.clone(), patience));
        let service = service_fn(move |request| {
            let shared = Arc::clone(&shared);
            async move {
                let (router, read, patience) = &*shared;
                let _answering = patience.pause();
                Ok::<_, Infallible>(answer(router, read, request).await)
            }
        });
        let stream = Stream { inner: stream, patience: Arc::clone(&waiting) };
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended early");
                    }
                }
                () = waiting.run_out() => tracing::debug!("a client was too slow, or silent"),
            }
            drop(permit);
        });
    }
    drop(listener);
    connections.shutdown().await;
}

/// Whether a connection waits for its client: for the head of a request, or to take an answer. A clock that is read
/// with each request would cost more than it is worth; so progress is counted, and looked at once in a while.
#[derive(Default)]
struct Patience {
    /// Goes up with each progress; odd while it is we who take the time. Only the connection's own task changes it.
    progress: AtomicU64,
}

impl Patience {
    /// Until the result is dropped, it is we who take the time.
    fn pause(&self) -> impl Drop + use<'_> {
        self.progress.store(self.progress.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        Resume(self)
    }

    fn note_progress(&self) {
        self.progress.store(self.progress.load(Ordering::Relaxed).wrapping_add(2), Ordering::Relaxed);
    }

    /// Ends when the client has kept us waiting for too long.
    async fn run_out(&self) {
        let mut seen = self.progress.load(Ordering::Relaxed);
        let mut waited = 0;
        while waited < LOOKS {
            tokio::time::sleep(CLIENT_TIMEOUT / LOOKS).await;
            let now = self.progress.load(Ordering::Relaxed);
            waited = if now == seen && now.is_multiple_of(2) { waited + 1 } else { 0 };
            seen = now;
        }
    }
}

struct Resume<'a>(&'a Patience);

impl Drop for Resume<'_> {
    fn drop(&mut self) {
        // From odd to the next even number.
        self.0.progress.store(self.0.progress.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// A socket that notes when its client takes something.
struct Stream {
    inner: TcpStream,
    patience: Arc<Patience>,
}

impl Stream {
    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.patience.note_progress();
        }
        written
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, buffers);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Small answers must not wait for more to send.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot set TCP_NODELAY");
            }
            Some((stream, permit))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}
