//! How long a connection waits for its client, and which one waits longest.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::Method;
use tokio::sync::Notify;

use countersign_store::clock::uptime_nanos;

/// A client that has not sent its next request's head by then is dropped; so is one that sends nothing, or takes nothing
/// of an answer for so long. It may be longer by the time between two looks.
pub(super) const CLIENT_TIMEOUT: Duration = Duration::from_secs(15);
const LOOKS: u32 = 5;

/// Whether a connection waits for its client: for a request, or to take an answer. A clock that is read with each
/// request would cost more than it is worth; so progress is counted, and looked at once in a while.
#[derive(Debug)]
pub(crate) struct Patience {
    /// Goes up with each progress; odd while it is we who take the time. Only the connection's own task changes it.
    pub(super) progress: AtomicU64,
    /// It is we who take the time, in order to wait for a body. That has a time limit of its own.
    awaits_body: AtomicBool,
    /// The answer is a stream of events: the client waits for us, except while it does not take what is there.
    pub(super) is_listened_to: AtomicBool,
    /// The client has not taken what was there to send.
    pub(super) is_blocked: AtomicBool,
    /// The newest request reads.
    is_read: AtomicBool,
    /// The head of a request was not small. Hyper's buffer stays as large as it was then.
    pub(super) has_large_head: AtomicBool,
    /// One of [`NO_ANSWER`], [`ANSWER_UNDER_WAY`] and [`ANSWER_WRITTEN`].
    pub(super) answer: AtomicU8,
    /// When the newest request came, or else the connection.
    since: AtomicU64,
    has_to_go: Notify,
}

/// There is nothing of ours to be sent: whatever is written now is hyper's own answer to what it cannot parse.
const NO_ANSWER: u8 = 0;
const ANSWER_UNDER_WAY: u8 = 1;
/// Hyper has all of the answer, but may not have sent it yet.
const ANSWER_WRITTEN: u8 = 2;

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
            is_listened_to: AtomicBool::new(false),
            is_blocked: AtomicBool::new(false),
            is_read: AtomicBool::new(false),
            has_large_head: AtomicBool::new(false),
            answer: AtomicU8::new(NO_ANSWER),
            since: AtomicU64::new(uptime_nanos(now)),
            has_to_go: Notify::new(),
        }
    }

    /// From now on it is we who take the time, for a request that came now.
    pub(super) fn begin(&self, method: &Method, now: Instant) {
        self.is_read.store(method.is_safe(), Ordering::Relaxed);
        self.since.store(uptime_nanos(now), Ordering::Relaxed);
        self.answer.store(ANSWER_UNDER_WAY, Ordering::Relaxed);
        self.progress.store(self.progress.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
    }

    /// Until the result is dropped.
    pub(super) fn pause(&self) -> impl Drop + use<'_> {
        Resume(self)
    }

    /// Whether a read is worked on, or its answer has yet to be taken. A change that nobody waits for any more is left to
    /// whoever tries again.
    pub(super) fn is_reading(&self) -> bool {
        let is_working = !self.progress.load(Ordering::Relaxed).is_multiple_of(2);
        self.is_read.load(Ordering::Relaxed) && (is_working || self.is_blocked.load(Ordering::Relaxed))
    }

    /// Hyper has the whole answer to the newest request.
    pub(super) fn note_written(&self) {
        self.answer.store(ANSWER_WRITTEN, Ordering::Relaxed);
    }

    /// Hyper has sent all that it had.
    pub(super) fn note_flushed(&self) {
        if self.answer.load(Ordering::Relaxed) == ANSWER_WRITTEN {
            self.answer.store(NO_ANSWER, Ordering::Relaxed);
        }
    }

    pub(super) fn has_no_answer(&self) -> bool {
        self.answer.load(Ordering::Relaxed) == NO_ANSWER
    }

    /// Until the result is dropped, the request waits for its body.
    pub(crate) fn await_body(&self) -> impl Drop + use<'_> {
        self.awaits_body.store(true, Ordering::Relaxed);
        BodyRead(self)
    }

    /// Until the result is dropped, the client listens to events.
    pub(crate) fn listen(self: &Arc<Self>) -> Listening {
        self.is_listened_to.store(true, Ordering::Relaxed);
        Listening(Arc::clone(self))
    }

    pub(super) fn note_progress(&self) {
        self.progress.store(self.progress.load(Ordering::Relaxed).wrapping_add(2), Ordering::Relaxed);
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.awaits_client() || self.awaits_body.load(Ordering::Relaxed)
    }

    pub(super) fn awaits_client(&self) -> bool {
        self.progress.load(Ordering::Relaxed).is_multiple_of(2)
            && (!self.is_listened_to.load(Ordering::Relaxed) || self.is_blocked.load(Ordering::Relaxed))
    }

    pub(super) fn grow_head(&self) {
        self.has_large_head.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_large_head(&self) -> bool {
        self.has_large_head.load(Ordering::Relaxed)
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
                    waited = if now == seen && self.awaits_client() { waited + 1 } else { 0 };
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

/// The client of a connection, while it listens to events.
#[derive(Debug)]
pub(crate) struct Listening(Arc<Patience>);

impl Listening {
    /// Whether it has yet to take what it was sent.
    pub(crate) fn is_blocked(&self) -> bool {
        self.0.is_blocked.load(Ordering::Relaxed)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.is_listened_to.store(false, Ordering::Relaxed);
    }
}
