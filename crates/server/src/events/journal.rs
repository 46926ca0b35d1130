//! Followers: other machines that read the journal (D68). Some read, others are up to date and wait for the next
//! commit.
//!
//! What a follower reads is made part by part, beside the runtime, as fast as it takes them. No change waits for it.

use std::{io, sync::Arc, time::Duration};

use axum::body::{Body, Bytes};
use countersign_api::error_code::ErrorCode;
use countersign_store::journal::export::{JournalExport, JournalPart};
use countersign_store::{ObjectId, Store, StoreError};
use futures_util::stream;
use tokio::{sync::mpsc, sync::watch, time::timeout};

use crate::http::{error::ApiError, sending::PIECE_BYTES, sending::few_turns, sending::run_in_turn};
use crate::limits::client_wait::Listening;
use crate::limits::semaphore::{Claimant, FairSemaphore, GaveWay, MinimumPace, Permit, SemaphoreRules};
use crate::{follow::background::HeldStore, metrics::Counter};

/// The journal after what a follower has.
pub(crate) async fn begin(
    followers: &Arc<Followers>,
    store: Arc<HeldStore>,
    after: Option<ObjectId>,
    claimant: Claimant,
) -> Result<SentJournal, ApiError> {
    let permit = followers.reading.take(claimant.clone()).await.map_err(|_| ApiError::TOO_MANY_FOLLOWERS)?;
    let found = permit.keep_waiting(followers.read(move || store.journal(after))).await?;
    let unreadable = |error: StoreError| {
        ApiError::new(ErrorCode::StorageFailed, "the journal cannot be read").because(error)
    };
    let found = found?.map_err(unreadable)?;
    let export =
        found.ok_or_else(|| not_in_history(after.map_or_else(String::new, |after| after.to_string())))?;
    Ok(SentJournal { followers: Arc::clone(followers), export, permit, claimant })
}

/// The answer to a follower whose newest commit this server does not have.
pub fn not_in_history(after: impl std::fmt::Display) -> ApiError {
    let message = format!(
        "the commit {after} is not in the history of this server: this is another server, it has not caught up yet, or \
         its history was rewritten. Compare the two, or leave out `after` to begin with the first commit"
    );
    ApiError::new(ErrorCode::UnknownCommit, message)
}

// Limits on followers: how many there can be at a time, and in what order they read.

/// Followers that read at the same time, and those of one address.
pub const MAX_READING: usize = 32;
pub const MAX_READING_PER_ADDRESS: usize = 8;
/// Followers that wait for a commit, and those of one address.
pub const MAX_WAITING: usize = 512;
pub const MAX_WAITING_PER_ADDRESS: usize = 64;

/// A follower that is slower loses its place, if others want it.
pub const MIN_BYTES_PER_SECOND: usize = 32 << 10;

const READING: SemaphoreRules = SemaphoreRules {
    share: MAX_READING_PER_ADDRESS,
    waiting: 2 * MAX_READING,
    max_wait: Duration::from_secs(10),
    grace: Some(Duration::from_secs(3)),
    pace: Some(MinimumPace { bytes_per_second: MIN_BYTES_PER_SECOND as u64, after: Duration::from_secs(3) }),
    ..SemaphoreRules::of(MAX_READING)
};
const WAITING: SemaphoreRules = SemaphoreRules {
    share: MAX_WAITING_PER_ADDRESS,
    grace: Some(Duration::ZERO),
    ..SemaphoreRules::of(MAX_WAITING)
};

#[derive(Debug)]
pub struct Followers {
    pub reading: Arc<FairSemaphore>,
    pub waiting: Arc<FairSemaphore>,
    /// How many read from disk at the same time.
    turns: Arc<FairSemaphore>,
    /// Commits that were sent, to all of them.
    pub sent: Counter,
}

/// What a follower asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowRequest {
    /// The newest commit that the follower has, or `None` if it has nothing.
    pub after: Option<ObjectId>,
    /// How long it waits if there is nothing new.
    pub wait: Duration,
}

/// Tells of new commits, and of the end of the server.
#[derive(Debug)]
pub struct CommitNews {
    pub end: watch::Receiver<i64>,
    pub is_stopping: watch::Receiver<bool>,
}

impl Default for Followers {
    fn default() -> Self {
        Self {
            reading: FairSemaphore::new(READING),
            waiting: FairSemaphore::new(WAITING),
            turns: few_turns(usize::MAX, usize::MAX, Duration::MAX),
            sent: Counter::default(),
        }
    }
}

impl Followers {
    /// Returns when there is something after what the follower has, or when its time is over.
    pub async fn wait(
        &self,
        store: &Store,
        request: FollowRequest,
        claimant: Claimant,
        mut news: CommitNews,
    ) -> Result<(), ApiError> {
        let is_up_to_date = || {
            let head = store.glance().commit;
            if head.is_null() { request.after.is_none() } else { request.after == Some(head) }
        };
        if request.wait.is_zero() || !is_up_to_date() {
            return Ok(());
        }
        let permit = self.waiting.try_take(claimant).map_err(|_| ApiError::TOO_MANY_FOLLOWERS)?;
        let told = async { while is_up_to_date() && news.end.changed().await.is_ok() {} };
        tokio::select! {
            _ = timeout(request.wait, told) => {}
            _ = news.is_stopping.wait_for(|is_stopping| *is_stopping) => {}
            () = permit.lost() => return Err(ApiError::TOO_MANY_FOLLOWERS.into()),
        }
        Ok(())
    }

    /// Reads outside the runtime, when it is its turn.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        run_in_turn(&self.turns, Claimant::default(), read).await
    }
}

// The journal as the body of an answer.

/// The bytes to read at a time. A part has one more file at most.
const PART_BYTES: usize = 256 << 10;
/// The bytes after which a follower takes its place anew. So others have a turn, and a follower that becomes slow
/// cannot live on how fast it was. At the slowest pace, this takes four seconds.
const LAP_BYTES: u64 = 128 << 10;

/// A journal that is about to be sent.
#[derive(Debug)]
pub struct SentJournal {
    followers: Arc<Followers>,
    export: JournalExport,
    permit: Permit,
    claimant: Claimant,
}

type Pieces = mpsc::Sender<Result<Bytes, io::Error>>;

impl SentJournal {
    /// The last commit that it has.
    pub fn head(&self) -> ObjectId {
        self.export.head()
    }

    /// A task of its own reads and sends, so that a follower that loses its place holds nothing any more, even if it
    /// does not take what was sent.
    pub fn into_body(self, client: Option<Listening>, is_stopping: watch::Receiver<bool>) -> Body {
        if self.export.is_done() {
            return Body::empty();
        }
        let (pieces, received) = mpsc::channel(1);
        tokio::spawn(self.send(pieces, is_stopping));
        Body::from_stream(stream::unfold((received, client), |(mut received, client)| async {
            let piece: Result<Bytes, io::Error> = received.recv().await?;
            Some((piece, (received, client)))
        }))
    }

    async fn send(self, pieces: Pieces, mut is_stopping: watch::Receiver<bool>) {
        // When this is over, the place and everything that was read are given back.
        // A follower that has gone is told nothing.
        let sent = tokio::select! {
            sent = self.send_all(&pieces) => sent,
            _ = is_stopping.wait_for(|is_stopping| *is_stopping) => Err("the server stops".to_owned()),
            () = pieces.closed() => Ok(()),
        };
        let Err(reason) = sent else { return };
        // The head is already sent, so the server can only break off.
        let _ = pieces.send(Err(io::Error::other(reason))).await;
    }

    /// Sends everything, or says why the journal ends early. The follower can go on from its last commit.
    async fn send_all(self, pieces: &Pieces) -> Result<(), String> {
        let gave_way = |GaveWay| GaveWay.to_string();
        let Self { followers, mut export, mut permit, claimant } = self;
        loop {
            let read = followers.read(move || {
                let part = export.next_part(PART_BYTES);
                (export, part)
            });
            let part;
            (export, part) =
                permit.keep_waiting(read).await.map_err(gave_way)?.map_err(|error| error.message)?;
            let part = part.map_err(|error| {
                tracing::error!(%error, "followers get no further: the journal cannot be read");
                "the journal cannot be read".to_owned()
            });
            let Some(JournalPart { bytes, commits }) = part? else { return Ok(()) };
            let mut rest = Bytes::from(bytes);
            while !rest.is_empty() {
                let piece = rest.split_to(rest.len().min(PIECE_BYTES));
                let length = piece.len() as u64;
                if permit.keep(pieces.send(Ok(piece))).await.map_err(gave_way)?.is_err() {
                    return Ok(());
                }
                if permit.meter().add(length) + length >= LAP_BYTES {
                    drop(permit);
                    let taken = followers.reading.take(claimant.clone()).await;
                    permit = taken.map_err(|_| gave_way(GaveWay))?;
                }
            }
            followers.sent.add(commits as u64);
        }
    }
}
