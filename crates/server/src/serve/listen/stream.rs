//! The bytes of a connection: what they say about its client's client_wait, and which of them the server sends.

use std::{io, pin::Pin, sync::Arc, sync::atomic::Ordering, task::Context, task::Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::{client_wait::ClientWait, connections::Connections, semaphore::Permit};

/// Hyper's first buffer. Nearly every head is much smaller.
const SMALL_HEAD_BYTES: usize = 8 * 1024;

/// A stream that notes when its client takes something. It hides the end of the client's half until a read is answered:
/// a client that has closed its sending half still waits for the answer. A failed write shows that the client has gone.
/// It leaves out hyper's own answers to what is no request, for which `refusal` has a better one.
#[derive(Debug)]
pub struct Stream<S> {
    inner: S,
    client_wait: Arc<ClientWait>,
    /// The client has ended its half, and hyper does not know yet.
    holds_end: bool,
    /// Bytes read since the last progress. They belong to a head if the server waits for one.
    head: HeadBytes,
    /// Counts large heads.
    connections: Arc<Connections>,
    large_head: Option<Permit>,
    /// Hyper has answered by itself, which ends the connection.
    left_out: bool,
}

#[derive(Debug, Default)]
struct HeadBytes {
    progress: u64,
    read: usize,
}

impl<S> Stream<S> {
    pub fn new(inner: S, client_wait: Arc<ClientWait>, connections: Arc<Connections>) -> Self {
        let head = HeadBytes::default();
        Self { inner, client_wait, holds_end: false, head, connections, large_head: None, left_out: false }
    }

    /// Hyper's buffer grows with an unfinished head. Many connections can have small heads, but only a few large ones.
    /// Fails if there are too many.
    fn note_read(&mut self, bytes: usize) -> io::Result<()> {
        let progress = self.client_wait.progress.load(Ordering::Relaxed);
        if self.head.progress != progress {
            self.head = HeadBytes { progress, read: 0 };
        }
        self.head.read += bytes;
        let is_large = self.head.read > SMALL_HEAD_BYTES && progress.is_multiple_of(2);
        if is_large && self.large_head.is_none() {
            self.client_wait.grow_head();
            self.large_head = self.connections.admit_large_head();
            return if self.large_head.is_some() { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) };
        }
        Ok(())
    }

    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.client_wait.note_progress();
        }
        self.note_blocked(written.is_pending());
        written
    }

    fn note_blocked(&self, is_blocked: bool) {
        self.client_wait.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    /// Whether these bytes are hyper's own. Hyper reads a head only when it has sent the answer to the one before.
    fn leaves_out(&mut self) -> bool {
        self.left_out = self.client_wait.has_no_answer();
        self.left_out
    }

    /// The stream itself, if hyper's last answer was left out.
    pub(crate) fn into_unanswered(self) -> Option<S> {
        self.left_out.then_some(self.inner)
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
        self.holds_end = has_ended && self.client_wait.is_reading();
        if self.holds_end { Poll::Pending } else { read }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.leaves_out() {
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
        if self.leaves_out() {
            return Poll::Ready(Ok(buffers.iter().map(|buffer| buffer.len()).sum()));
        }
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, buffers);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client_wait.note_flushed();
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.note_blocked(flushed.is_pending());
        if self.holds_end && !self.client_wait.is_reading() {
            // Nothing else would wake hyper: the end was there already.
            self.holds_end = false;
            context.waker().wake_by_ref();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.left_out { Poll::Ready(Ok(())) } else { Pin::new(&mut self.inner).poll_shutdown(context) }
    }
}
