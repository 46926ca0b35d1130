//! The journal as the body of an answer.

use std::{io, sync::Arc};

use axum::body::{Body, Bytes};
use countersign_store::{
    ObjectId, StoreError,
    journal::export::{JournalExport, JournalPart},
};
use futures_util::stream;
use tokio::sync::{mpsc, watch};

use super::followers::Followers;
use crate::{
    limits::semaphore::{Claimant, GaveWay, Permit},
    patience::Listening,
    sending::PIECE_BYTES,
};

/// Read at a time. A part has one more file at most.
const PART_BYTES: usize = 256 << 10;
/// After so many bytes a follower takes its place anew. So others have a turn, and a follower that becomes slow cannot
/// live on how fast it was: at the slowest pace, this takes four seconds.
const LAP_BYTES: u64 = 128 << 10;

/// A journal that is about to be sent.
#[derive(Debug)]
pub struct SentJournal {
    pub(super) followers: Arc<Followers>,
    pub(super) export: JournalExport,
    pub(super) place: Permit,
    pub(super) claimant: Claimant,
}

/// Why a journal ends early. The follower can go on from its last commit.
enum BrokenOff {
    GaveWay,
    /// The follower has gone.
    Gone,
    Stopping,
    Unreadable(StoreError),
    /// The panic itself was logged where it happened.
    Panicked,
}

type Pieces = mpsc::Sender<Result<Bytes, io::Error>>;

impl SentJournal {
    /// The last commit that it has.
    pub fn head(&self) -> ObjectId {
        self.export.head()
    }

    /// A task of its own reads and sends, so that a follower that loses its place holds nothing any more, even if it does
    /// not take what was sent.
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
        let sent = tokio::select! {
            sent = self.send_all(&pieces) => sent,
            _ = is_stopping.wait_for(|is_stopping| *is_stopping) => Err(BrokenOff::Stopping),
            () = pieces.closed() => Err(BrokenOff::Gone),
        };
        let reason = match sent {
            Ok(()) | Err(BrokenOff::Gone) => return,
            Err(BrokenOff::GaveWay) => GaveWay.to_string(),
            Err(BrokenOff::Stopping) => "the server stops".to_owned(),
            Err(BrokenOff::Unreadable(error)) => {
                tracing::error!(%error, "followers get no further: the journal cannot be read");
                "the journal cannot be read".to_owned()
            }
            Err(BrokenOff::Panicked) => "an unexpected error occurred".to_owned(),
        };
        // The head is already sent, so the server can only break off.
        let _ = pieces.send(Err(io::Error::other(reason))).await;
    }

    async fn send_all(self, pieces: &Pieces) -> Result<(), BrokenOff> {
        let Self { followers, mut export, mut place, claimant } = self;
        loop {
            let read = followers.read(move || {
                let part = export.next_part(PART_BYTES);
                (export, part)
            });
            let read = place.keep(read).await.map_err(|GaveWay| BrokenOff::GaveWay)?;
            let part;
            (export, part) = read.map_err(|_| BrokenOff::Panicked)?;
            let Some(JournalPart { bytes, commits }) = part.map_err(BrokenOff::Unreadable)? else {
                return Ok(());
            };
            let mut rest = Bytes::from(bytes);
            while !rest.is_empty() {
                let piece = rest.split_to(rest.len().min(PIECE_BYTES));
                let length = piece.len() as u64;
                let sent = place.keep(pieces.send(Ok(piece))).await;
                sent.map_err(|GaveWay| BrokenOff::GaveWay)?.map_err(|_| BrokenOff::Gone)?;
                if place.meter().add(length) + length >= LAP_BYTES {
                    drop(place);
                    place = followers.reading.take(claimant.clone()).await.map_err(|_| BrokenOff::GaveWay)?;
                }
            }
            followers.sent.add(commits as u64);
        }
    }
}
