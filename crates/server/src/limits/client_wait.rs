//! How long a connection waits for its client, and which one has waited longest.

use std::sync::{Arc, atomic::AtomicBool, atomic::AtomicU8, atomic::AtomicU64, atomic::Ordering};
use std::time::{Duration, Instant};

use axum::http::Method;
use countersign_store::machine::clock::uptime_nanos;
use tokio::sync::Notify;

/// The server drops a client that does not send the head of its next request in this time, or takes nothing of an answer
/// for so long. The drop can come later by the time between two looks. Bodies have a time of their own (`http::body`).
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(15);
const LOOKS: u32 = 5;

/// Keeps whether a connection waits for its client, for a request or to take an answer. Reading a clock with each
/// request would cost too much. So the connection counts progress, and a timer looks at the count once in a while.
#[derive(Debug, Default)]
pub struct ClientWait {
    /// Goes up with each progress; odd while the server works. Only the connection's own task changes it.
    pub(crate) progress: AtomicU64,
    /// The server waits for a body. That has a time limit of its own.
    awaits_body: AtomicBool,
    /// The answer is a stream of events. The client waits for the server, unless it leaves events unread.
    pub(crate) is_listened_to: AtomicBool,
    /// The client has not taken what was ready to send.
    pub(crate) is_blocked: AtomicBool,
    is_read: AtomicBool,
    /// A request had a large head. Hyper's buffer stays that large.
    pub(crate) has_large_head: AtomicBool,
    /// One of [`NO_ANSWER`], [`ANSWER_UNDER_WAY`] and [`ANSWER_WRITTEN`].
    pub(crate) answer: AtomicU8,
    /// When the newest request came, or else the connection.
    since: AtomicU64,
    /// Others need the connection's place.
    has_to_go: AtomicBool,
    told_to_go: Notify,
}

/// No answer of ours is being sent. What hyper writes now is its own answer to an invalid request.
const NO_ANSWER: u8 = 0;
const ANSWER_UNDER_WAY: u8 = 1;
/// Hyper has all of the answer, but may not have sent it yet.
const ANSWER_WRITTEN: u8 = 2;

/// Why the server ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    TooSlow,
    /// The connection made room for a newer one.
    GaveWay,
}

impl ClientWait {
    pub fn new(now: Instant) -> Self {
        Self { since: AtomicU64::new(uptime_nanos(now)), ..Self::default() }
    }

    /// The server starts to work on a request that came now.
    pub fn begin(&self, method: &Method, now: Instant) {
        self.is_read.store(method.is_safe(), Ordering::Relaxed);
        self.since.store(uptime_nanos(now), Ordering::Relaxed);
        self.answer.store(ANSWER_UNDER_WAY, Ordering::Relaxed);
        self.progress.store(self.progress.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
    }

    /// The server works on the request until the result is dropped.
    pub fn pause(&self) -> impl Drop + use<'_> {
        // From odd to the next even number.
        OnDrop(|| self.add_progress(1))
    }

    /// Whether the server works on a read, or the client has yet to take its answer. A client that abandons a change
    /// has to repeat it.
    pub fn is_reading(&self) -> bool {
        let is_working = !self.progress.load(Ordering::Relaxed).is_multiple_of(2);
        self.is_read.load(Ordering::Relaxed) && (is_working || self.is_blocked.load(Ordering::Relaxed))
    }

    /// Hyper has the whole answer to the newest request.
    pub fn note_written(&self) {
        self.answer.store(ANSWER_WRITTEN, Ordering::Relaxed);
    }

    /// Hyper has sent all that it had.
    pub fn note_flushed(&self) {
        if self.answer.load(Ordering::Relaxed) == ANSWER_WRITTEN {
            self.answer.store(NO_ANSWER, Ordering::Relaxed);
        }
    }

    pub fn has_no_answer(&self) -> bool {
        self.answer.load(Ordering::Relaxed) == NO_ANSWER
    }

    /// The request waits for its body until the result is dropped.
    pub fn await_body(&self) -> impl Drop + use<'_> {
        self.awaits_body.store(true, Ordering::Relaxed);
        OnDrop(|| self.awaits_body.store(false, Ordering::Relaxed))
    }

    /// The client listens to events until the result is dropped.
    pub fn listen(self: &Arc<Self>) -> Listening {
        self.is_listened_to.store(true, Ordering::Relaxed);
        Listening(Arc::clone(self))
    }

    pub fn note_progress(&self) {
        self.add_progress(2);
    }

    fn add_progress(&self, more: u64) {
        self.progress.store(self.progress.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub fn is_waiting(&self) -> bool {
        self.awaits_client() || self.awaits_body.load(Ordering::Relaxed)
    }

    pub fn awaits_client(&self) -> bool {
        self.progress.load(Ordering::Relaxed).is_multiple_of(2)
            && (!self.is_listened_to.load(Ordering::Relaxed) || self.is_blocked.load(Ordering::Relaxed))
    }

    pub fn grow_head(&self) {
        self.has_large_head.store(true, Ordering::Relaxed);
    }

    pub fn has_large_head(&self) -> bool {
        self.has_large_head.load(Ordering::Relaxed)
    }

    pub fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// Ends the connection as soon as it waits for its client.
    pub fn give_way(&self) {
        self.has_to_go.store(true, Ordering::Relaxed);
        self.told_to_go.notify_one();
    }

    pub fn has_to_go(&self) -> bool {
        self.has_to_go.load(Ordering::Relaxed)
    }

    /// Ends when the client has kept the server waiting for too long, or when others need the place.
    pub async fn run_out(&self) -> Dropped {
        let mut seen = self.progress.load(Ordering::Relaxed);
        let mut waited = 0;
        loop {
            tokio::select! {
                () = tokio::time::sleep(CLIENT_TIMEOUT / LOOKS) => {
                    let now = self.progress.load(Ordering::Relaxed);
                    waited = if now == seen && self.awaits_client() { waited + 1 } else { 0 };
                    seen = now;
                }
                () = self.told_to_go.notified() => {}
            }
            if self.has_to_go() && self.is_waiting() {
                return Dropped::GaveWay;
            }
            if waited >= LOOKS {
                return Dropped::TooSlow;
            }
        }
    }
}

pub(crate) struct OnDrop<F: Fn()>(pub(crate) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The client of a connection, while it listens to events.
#[derive(Debug)]
pub struct Listening(Arc<ClientWait>);

impl Listening {
    /// Whether the client has yet to take what it was sent.
    pub fn is_blocked(&self) -> bool {
        self.0.is_blocked.load(Ordering::Relaxed)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.is_listened_to.store(false, Ordering::Relaxed);
    }
}
