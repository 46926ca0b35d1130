//! How long a connection waits for its client, and which one waits longest.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
};

use crate::clock::uptime_nanos;

/// A client that has not sent its next request's head by then is dropped; so is one that sends nothing, or takes nothing
/// of an answer for so long. It may be longer by the time between two looks.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(15);
const LOOKS: u32 = 5;

/// Whether a connection waits for its client: for a request, or to take an answer. A clock that is read with each
/// request would cost more than it is worth; so progress is counted, and looked at once in a while.
#[derive(Debug)]
pub(crate) struct Patience {
    /// Goes up with each progress; odd while it is we who take the time. Only the connection's own task changes it.
    progress: AtomicU64,
    /// It is we who take the time, in order to wait for a body. That has a time limit of its own.
    awaits_body: AtomicBool,
    /// When the newest request came, or else the connection.
    since: AtomicU64,
    has_to_go: Notify,
}

/// Why a connection ends although its client did not end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    TooSlow,
    /// In favour of a newer one.
    GaveWay,
}

impl Patience {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            progress: AtomicU64::new(0),
            awaits_body: AtomicBool::new(false),
            since: AtomicU64::new(uptime_nanos(now)),
            has_to_go: Notify::new(),
        }
    }

    /// Until the result is dropped, it is we who take the time, for a request that came now.
    pub(super) fn pause(&self, now: Instant) -> impl Drop + use<'_> {
        self.since.store(uptime_nanos(now), Ordering::Relaxed);
        self.progress.store(self.progress.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        Resume(self)
    }

    /// Until the result is dropped, the request waits for its body.
    pub(crate) fn await_body(&self) -> impl Drop + use<'_> {
        self.awaits_body.store(true, Ordering::Relaxed);
        BodyRead(self)
    }

    fn note_progress(&self) {
        self.progress.store(self.progress.load(Ordering::Relaxed).wrapping_add(2), Ordering::Relaxed);
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.progress.load(Ordering::Relaxed).is_multiple_of(2) || self.awaits_body.load(Ordering::Relaxed)
    }

    pub(super) fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// Ends the connection as soon as it waits for its client.
    pub(super) fn give_way(&self) {
        self.has_to_go.notify_one();
    }

    /// Ends when the client has kept us waiting for too long, or others have to be let in.
    pub(super) async fn run_out(&self) -> Dropped {
        let mut seen = self.progress.load(Ordering::Relaxed);
        let mut waited = 0;
        let mut has_to_go = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(CLIENT_TIMEOUT / LOOKS) => {
                    let now = self.progress.load(Ordering::Relaxed);
                    waited = if now == seen && now.is_multiple_of(2) { waited + 1 } else { 0 };
                    seen = now;
                }
                () = self.has_to_go.notified() => has_to_go = true,
            }
            if has_to_go && self.is_waiting() {
                return Dropped::GaveWay;
            }
            if waited >= LOOKS {
                return Dropped::TooSlow;
            }
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

struct BodyRead<'a>(&'a Patience);

impl Drop for BodyRead<'_> {
    fn drop(&mut self) {
        self.0.awaits_body.store(false, Ordering::Relaxed);
    }
}

/// A stream that notes when its client takes something.
pub(super) struct Stream<S> {
    pub(super) inner: S,
    pub(super) patience: Arc<Patience>,
}

impl<S> Stream<S> {
    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.patience.note_progress();
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
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
