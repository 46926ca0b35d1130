//! Large answers (D45). Their bytes are read away from the threads that serve connections, shared among all readers of
//! the same content, and sent in pieces. The bytes on their way at the same time are bounded, in all and for each
//! address, so that slow clients do not fill the memory.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread,
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody, to_bytes},
    response::Response,
};
use countersign_core::rules::snapshot::ReadError;
use futures_util::stream;
use hyper::body::{Frame, SizeHint};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};

use crate::{error::ApiError, limits::Share, origin::RequestOrigin};

/// Answers up to this size do not wait for room.
pub const SMALL_BYTES: usize = 64 << 10;
/// For all answers that are being sent.
pub const MOST_BYTES: usize = 96 << 20;
/// A TLS connection copies what it sends, so it gets no more than this at a time.
pub const PIECE_BYTES: usize = 64 << 10;
/// How long a request waits for room, and for its turn to read.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The unit in which room is counted.
const UNIT_BYTES: usize = 1 << 10;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sending {
    room: Arc<Semaphore>,
    /// Bounds how many requests read large content at the same time.
    readers: Arc<Semaphore>,
}

/// The room that an answer takes until all of it is sent.
#[derive(Debug)]
pub struct Room {
    _room: OwnedSemaphorePermit,
    _share: Option<Share>,
}

/// A part of a body that is read in parts.
#[derive(Debug)]
pub struct BodyPart {
    pub bytes: Bytes,
    /// The position of the next part; `None` after the last.
    pub next: Option<usize>,
}

impl Default for Sending {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            room: Arc::new(Semaphore::new(MOST_BYTES / UNIT_BYTES)),
            readers: Arc::new(Semaphore::new(processors.max(2))),
        }
    }
}

impl Sending {
    /// Waits for room for an answer that has so many bytes in memory at a time.
    pub async fn hold(&self, bytes: usize, origin: Option<&RequestOrigin>) -> Result<Room, ApiError> {
        let client = origin.and_then(|origin| origin.client.as_ref());
        let share = client.map(|client| client.share_sending(bytes)).transpose()?;
        let units = u32::try_from(bytes.min(MOST_BYTES).div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let room = timeout(MAX_WAIT, Arc::clone(&self.room).acquire_many_owned(units)).await;
        let Ok(Ok(room)) = room else { return Err(ApiError::busy()) };
        Ok(Room { _room: room, _share: share })
    }

    /// Reads outside the runtime, when it is its turn. An abandoned request does not begin.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = timeout(MAX_WAIT, self.take_turn()).await.map_err(|_| ApiError::busy())?;
        run_beside(turn, read).await
    }

    async fn take_turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.readers).acquire_owned().await.ok()
    }

    /// A body of bytes that are in memory already.
    pub async fn body(&self, bytes: Bytes, origin: Option<&RequestOrigin>) -> Result<Body, ApiError> {
        if bytes.len() <= SMALL_BYTES {
            return Ok(Body::from(bytes));
        }
        let room = self.hold(bytes.len(), origin).await?;
        Ok(Body::new(Pieces { rest: bytes, _room: room }))
    }

    /// A complete answer, whose body waits for room if it is large.
    pub async fn bound(
        &self,
        response: Response,
        origin: Option<&RequestOrigin>,
    ) -> Result<Response, ApiError> {
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.map_err(|_| ApiError::panicked())?;
        Ok(Response::from_parts(parts, self.body(bytes, origin).await?))
    }

    /// A body that is read in parts, each after the one before was sent. It ends with its connection. `read` returns
    /// the part at a position.
    pub fn stream(
        &self,
        room: Room,
        first: BodyPart,
        read: impl Fn(usize) -> Result<BodyPart, ReadError> + Send + Sync + 'static,
    ) -> Body {
        let BodyPart { bytes: rest, next } = first;
        let streamed = Streamed { sending: self.clone(), read: Arc::new(read), rest, next, _room: room };
        Body::from_stream(stream::try_unfold(streamed, |mut streamed| async move {
            // The head is already sent, so the server can only break off.
            streamed.fill().await.map_err(|error| io::Error::other(error.message))?;
            let piece = next_piece(&mut streamed.rest);
            Ok::<_, io::Error>((!piece.is_empty()).then_some((piece, streamed)))
        }))
    }

    /// How many bytes of large answers are being sent.
    pub fn bytes(&self) -> usize {
        MOST_BYTES.saturating_sub(self.room.available_permits() * UNIT_BYTES)
    }
}

/// Works outside the runtime. Work that has begun goes on without its request, and keeps its turn.
pub(crate) async fn run_beside<T: Send + 'static>(
    turn: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let working = spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    working.await.map_err(|_| ApiError::panicked())
}

struct Streamed<R> {
    sending: Sending,
    read: Arc<R>,
    /// What was read and not yet sent.
    rest: Bytes,
    next: Option<usize>,
    _room: Room,
}

impl<R: Fn(usize) -> Result<BodyPart, ReadError> + Send + Sync + 'static> Streamed<R> {
    async fn fill(&mut self) -> Result<(), ApiError> {
        while let Some(from) = self.next.filter(|_| self.rest.is_empty()) {
            let read = Arc::clone(&self.read);
            // Others can go first for a while, but an answer that has begun is never given up for them.
            let turn = self.sending.take_turn().await;
            let part = run_beside(turn, move || read(from)).await??;
            (self.rest, self.next) = (part.bytes, part.next);
        }
        Ok(())
    }
}

/// Bytes that others can read as well.
struct Pieces {
    rest: Bytes,
    _room: Room,
}

fn next_piece(rest: &mut Bytes) -> Bytes {
    rest.split_to(rest.len().min(PIECE_BYTES))
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = Some(next_piece(&mut self.rest)).filter(|piece| !piece.is_empty());
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
