//! The bytes of a connection: what they say about its client's patience, and answers that replace hyper's own.

use std::{
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    connections::{Connections, LargeHead},
    refusal::Refusal,
};
use crate::patience::Patience;

/// Hyper's first buffer. Nearly every head is much smaller.
const SMALL_HEAD_BYTES: usize = 8 * 1024;

/// A stream that notes when its client takes something. It hides the end of the client's half until a read is answered:
/// a client that has closed its sending half still waits for the answer. A failed write shows that the client has gone.
/// The stream also adds a body to hyper's own answers.
pub(super) struct Stream<S> {
    inner: S,
    patience: Arc<Patience>,
    /// The client has ended its half, and hyper does not know yet.
    holds_end: bool,
    /// Bytes read since the last progress. They belong to a head if the server waits for one.
    head: HeadBytes,
    /// Counts large heads.
    connections: Arc<Connections>,
    large_head: Option<LargeHead>,
    /// Replaces what hyper wrote. The connection ends with it.
    refusal: Option<Box<Refusal>>,
}

#[derive(Default)]
struct HeadBytes {
    progress: u64,
    read: usize,
}

impl<S> Stream<S> {
    pub(super) fn new(inner: S, patience: Arc<Patience>, connections: Arc<Connections>) -> Self {
        let head = HeadBytes::default();
        Self { inner, patience, holds_end: false, head, connections, large_head: None, refusal: None }
    }

    /// Hyper's buffer grows with an unfinished head. Many connections can have small heads, but only a few large ones.
    /// Fails if there are too many.
    fn note_read(&mut self, bytes: usize) -> io::Result<()> {
        let progress = self.patience.progress.load(Ordering::Relaxed);
        if self.head.progress != progress {
            self.head = HeadBytes { progress, read: 0 };
        }
        self.head.read += bytes;
        let is_large = self.head.read > SMALL_HEAD_BYTES && progress.is_multiple_of(2);
        if is_large && self.large_head.is_none() {
            self.patience.grow_head();
            self.large_head = self.connections.admit_large_head();
            return if self.large_head.is_some() { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) };
        }
        Ok(())
    }

    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.patience.note_progress();
        }
        self.note_blocked(written.is_pending());
        written
    }

    fn note_blocked(&self, is_blocked: bool) {
        self.patience.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    /// Whether to drop these bytes of hyper's and send something else instead.
    fn replaces(&mut self, bytes: impl FnOnce() -> Vec<u8>) -> bool {
        if self.patience.has_no_answer() && self.refusal.is_none() {
            self.refusal = Refusal::instead_of(&bytes()).map(Box::new);
        }
        self.refusal.is_some()
    }
}

impl<S: AsyncWrite + Unpin> Stream<S> {
    fn poll_send_refusal(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(refusal) = &mut self.refusal else { return Poll::Ready(Ok(())) };
        while !refusal.unsent().is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_write(context, refusal.unsent()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => refusal.note_sent(sent),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> Stream<S> {
    /// Reads what the client of a refused request still sends. The time limit is that between two requests.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(refusal) = &mut self.refusal else { return Poll::Ready(()) };
        let mut space = [0; 4 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut space);
            let read = ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer));
            if read.is_err() || !refusal.drains_on_after(buffer.filled().len()) {
                return Poll::Ready(());
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, has_room) = (buffer.filled().len(), buffer.remaining() > 0);
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        self.note_read(bytes)?;
        let has_ended = matches!(read, Poll::Ready(Ok(()))) && has_room && bytes == 0;
        self.holds_end = has_ended && self.patience.is_reading();
        if self.holds_end { Poll::Pending } else { read }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.replaces(|| bytes.to_vec()) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.replaces(|| buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect()) {
            return Poll::Ready(Ok(buffers.iter().map(|buffer| buffer.len()).sum()));
        }
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, buffers);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.patience.note_flushed();
        ready!(self.poll_send_refusal(context))?;
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.note_blocked(flushed.is_pending());
        if self.holds_end && !self.patience.is_reading() {
            // Nothing else would wake hyper: the end was there already.
            self.holds_end = false;
            context.waker().wake_by_ref();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send_refusal(context))?;
        ready!(Pin::new(&mut self.inner).poll_shutdown(context))?;
        self.poll_drain(context).map(Ok)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
        time::timeout,
    };

    use std::time::{Duration, Instant};

    use axum::http::Method;

    use super::*;
    use crate::{
        listen::connections::ConnectionLimits,
        patience::{CLIENT_TIMEOUT, Dropped},
    };

    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn patience() -> Arc<Patience> {
        Arc::new(Patience::new(Instant::now()))
    }

    fn stream<S>(inner: S, patience: &Arc<Patience>) -> Stream<S> {
        let limits = ConnectionLimits { total: 10, per_address: None };
        Stream::new(inner, Arc::clone(patience), Arc::new(Connections::new(limits)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_no_request_is_dropped() {
        let patience = patience();
        assert!(patience.is_waiting());
        assert_eq!(timeout(2 * CLIENT_TIMEOUT, patience.run_out()).await, Ok(Dropped::TooSlow));
    }

    #[tokio::test(start_paused = true)]
    async fn a_listener_that_is_told_nothing_is_not_the_one_that_is_waited_for() {
        let patience = patience();
        let (inner, mut client) = tokio::io::duplex(64);
        let mut stream = stream(inner, &patience);
        let listening = patience.listen();
        stream.write_all(b"event").await.unwrap();
        stream.flush().await.unwrap();
        assert!(!listening.is_blocked() && !patience.is_waiting());
        assert!(timeout(HOUR, patience.run_out()).await.is_err(), "no one has to go");
        client.read_exact(&mut [0; 5]).await.unwrap();
        // Waiting for the next request on this connection is the same as on any other.
        drop(listening);
        assert_eq!(timeout(2 * CLIENT_TIMEOUT, patience.run_out()).await, Ok(Dropped::TooSlow));
    }

    #[tokio::test(start_paused = true)]
    async fn a_listener_that_takes_nothing_is_dropped() {
        let patience = patience();
        let (inner, mut client) = tokio::io::duplex(64);
        let mut stream = stream(inner, &patience);
        let listening = patience.listen();
        let writing = tokio::spawn(async move { stream.write_all(&[0; 200]).await });
        // The client takes a little at a time, which is fine.
        for _ in 0..2 {
            assert!(timeout(CLIENT_TIMEOUT / 2, patience.run_out()).await.is_err());
            assert!(listening.is_blocked() && patience.is_waiting());
            client.read_exact(&mut [0; 64]).await.unwrap();
        }
        assert_eq!(timeout(2 * CLIENT_TIMEOUT, patience.run_out()).await, Ok(Dropped::TooSlow));
        client.read_exact(&mut [0; 72]).await.unwrap();
        writing.await.unwrap().unwrap();
        assert!(!listening.is_blocked());
    }

    /// A stream whose client has gone.
    fn ended(patience: &Arc<Patience>) -> Stream<DuplexStream> {
        stream(tokio::io::duplex(64).0, patience)
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_client_that_waits_for_an_answer_is_seen_after_it() {
        let patience = patience();
        let mut stream = ended(&patience);
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
        patience.begin(&Method::GET, Instant::now());
        assert!(timeout(HOUR, stream.read(&mut [0; 8])).await.is_err(), "an answer is under way");
        drop(patience.pause());
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
        patience.begin(&Method::POST, Instant::now());
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_head_is_large_beyond_8_kib_and_a_body_never() {
        let patience = patience();
        let (inner, mut client) = tokio::io::duplex(64 * 1024);
        let mut stream = stream(inner, &patience);
        let mut pass = async |bytes: usize| {
            client.write_all(&vec![b'a'; bytes]).await.unwrap();
            stream.read_exact(&mut vec![0; bytes]).await.unwrap();
        };
        pass(SMALL_HEAD_BYTES).await;
        assert!(!patience.has_large_head());
        patience.begin(&Method::POST, Instant::now());
        pass(2 * SMALL_HEAD_BYTES).await;
        drop(patience.pause());
        pass(SMALL_HEAD_BYTES).await;
        assert!(!patience.has_large_head());
        pass(1).await;
        assert!(patience.has_large_head());
    }
}
