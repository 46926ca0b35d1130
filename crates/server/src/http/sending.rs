//! Work beside the threads that serve connections, in turns, and large answers (D45). Their bytes are read away from
//! the threads that serve connections, shared among all readers of the same content, and sent in pieces. The bytes on
//! their way at the same time are bounded, in all and for each address, so that slow clients do not fill the memory.

use std::{convert::Infallible, io, sync::Arc, thread, time::Duration};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use countersign_core::rules::snapshot::ReadError;
use futures_util::stream;
use tokio::task::spawn_blocking;

use crate::http::error::ApiError;
use crate::limits::connections::RequestSender;
use crate::limits::semaphore::{Claimant, FairSemaphore, Permit, SemaphoreRules};

/// Answers up to this size do not wait for room.
pub const SMALL_BYTES: usize = 64 << 10;
/// The most bytes of all large answers that are being sent.
pub const MOST_BYTES: usize = 96 << 20;
/// A TLS connection copies what it sends, so it gets no more than this at a time.
pub const PIECE_BYTES: usize = 64 << 10;
/// How long a request waits for room, and for its turn to read.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The room for large answers and the turns to read them. It is cheap to clone.
#[derive(Debug, Clone)]
pub struct Sending {
    /// The room for answers, counted in bytes.
    room: Arc<FairSemaphore>,
    /// Bounds how many requests read large content at the same time.
    readers: Arc<FairSemaphore>,
}

/// The room that an answer takes until all of it is sent: of all, and of its address.
pub type Room = (Permit, Option<Permit>);

/// A part of a body that is read in parts.
#[derive(Debug)]
pub struct BodyPart {
    pub bytes: Bytes,
    /// The position of the next part; `None` after the last.
    pub next: Option<usize>,
}

impl Default for Sending {
    fn default() -> Self {
        let bound = |total| {
            let rules =
                SemaphoreRules { waiting: usize::MAX, max_wait: MAX_WAIT, ..SemaphoreRules::of(total) };
            FairSemaphore::new(rules)
        };
        Self { room: bound(MOST_BYTES), readers: bound(processors().max(2)) }
    }
}

impl Sending {
    /// Waits for room for an answer that has so many bytes in memory at a time.
    pub async fn hold(&self, bytes: usize, sender: &RequestSender) -> Result<Room, ApiError> {
        let share = sender.client.as_ref().map(|client| client.share_sending(bytes)).transpose()?;
        Ok((self.room.take_within(sender.claimant(), bytes.min(MOST_BYTES), MAX_WAIT).await?, share))
    }

    /// Reads outside the runtime, when it is its turn. An abandoned request does not begin.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        run_in_turn(&self.readers, Claimant::default(), read).await
    }

    /// An answer with bytes that are in memory already. It waits for room if it is large.
    pub async fn answer(&self, bytes: Bytes, sender: &RequestSender) -> Result<Response, ApiError> {
        if bytes.len() <= SMALL_BYTES {
            return Ok(Response::new(Body::from(bytes)));
        }
        let (length, room) = (bytes.len(), self.hold(bytes.len(), sender).await?);
        let body = Body::from_stream(stream::unfold((bytes, room), |(mut rest, room)| async {
            let piece = next_piece(&mut rest);
            (!piece.is_empty()).then_some((Ok::<_, Infallible>(piece), (rest, room)))
        }));
        Ok(sized(body, length))
    }

    /// Makes a complete answer wait for room if its body is large.
    pub async fn bound(&self, response: Response, sender: &RequestSender) -> Result<Response, ApiError> {
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.map_err(|_| ApiError::PANICKED)?;
        let mut response = self.answer(bytes, sender).await?;
        *response.status_mut() = parts.status;
        *response.extensions_mut() = parts.extensions;
        response.headers_mut().extend(parts.headers);
        Ok(response)
    }

    /// A body that is read in parts, each after the one before was sent. It ends with its connection. `read` returns
    /// the part at a position.
    pub fn stream(
        &self,
        room: Room,
        first: BodyPart,
        read: impl Fn(usize) -> Result<BodyPart, ReadError> + Send + Sync + 'static,
    ) -> Body {
        let (readers, read) = (Arc::clone(&self.readers), Arc::new(read));
        Body::from_stream(stream::try_unfold((first, room), move |(mut part, room)| {
            let (readers, read) = (Arc::clone(&readers), Arc::clone(&read));
            async move {
                while let Some(from) = part.next.filter(|_| part.bytes.is_empty()) {
                    // Others can go first for a while, but an answer that has begun is never given up for them.
                    let turn = readers.take_within(Claimant::default(), 1, Duration::MAX).await;
                    let read = Arc::clone(&read);
                    let next = run_beside(turn, move || read(from)).await.and_then(|next| Ok(next?));
                    // The head is already sent, so the server can only break off.
                    part = next.map_err(|error| io::Error::other(error.message))?;
                }
                let piece = next_piece(&mut part.bytes);
                Ok::<_, io::Error>((!piece.is_empty()).then_some((piece, (part, room))))
            }
        }))
    }

    /// How many bytes of large answers are being sent.
    pub fn bytes(&self) -> usize {
        self.room.held()
    }
}

pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Turns for work that leaves half of the processors to other work. Work that has begun cannot be stopped, so no one
/// loses a turn.
pub fn few_turns(most: usize, waiting: usize, max_wait: Duration) -> Arc<FairSemaphore> {
    let total = (processors() / 2).clamp(1, most);
    FairSemaphore::new(SemaphoreRules { waiting, max_wait, ..SemaphoreRules::of(total) })
}

/// Works outside the runtime when it is its turn. Work that has begun goes on without its request, and keeps its turn.
pub async fn run_in_turn<T: Send + 'static>(
    turns: &Arc<FairSemaphore>,
    claimant: Claimant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    run_beside(turns.take(claimant).await?, work).await
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
    working.await.map_err(|_| ApiError::PANICKED.into())
}

fn next_piece(rest: &mut Bytes) -> Bytes {
    rest.split_to(rest.len().min(PIECE_BYTES))
}

/// An answer whose length is known before its body.
pub(crate) fn sized(body: Body, length: usize) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

/// An answer of a type that browsers must not guess anew, and how long copies of it can be used.
pub(crate) fn typed(body: impl IntoResponse, content_type: &'static str, caching: &'static str) -> Response {
    let headers =
        [(CONTENT_TYPE, content_type), (CACHE_CONTROL, caching), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, body).into_response()
}
