//! Turns to make the server fetch. Strangers can ask for them, so there are bounds for all strangers together and for
//! each.

use std::{sync::Arc, time::Duration};

use crate::{
    counting::{Counter, named},
    limits::{
        Share,
        places::{Claimant, HeldPlace, PlaceRules, SharedPlaces},
    },
};

/// Requests that fetch, or wait for the writer with what they fetched. Each has up to 8 MiB in memory. Strangers
/// together, and any single address, project or key, can have at most half of the turns.
pub const MAX_FETCHING: usize = 32;
/// How many requests can wait for their turn, and how long.
pub const MAX_WAITING: usize = 256;
const MAX_WAIT: Duration = Duration::from_secs(10);
/// A turn lasts at least this long. Most fetches are done by then.
const GRACE: Duration = Duration::from_millis(500);

const TURNS: PlaceRules = PlaceRules {
    total: MAX_FETCHING,
    share: MAX_FETCHING / 2,
    strangers: MAX_FETCHING / 2,
    waiting: MAX_WAITING,
    max_wait: MAX_WAIT,
    grace: Some(GRACE),
    pace: None,
};

named! {
    pub enum FetchKind {
        Signers = "signers",
        Checksums = "checksums",
        Release = "release",
    }
}

named! {
    pub enum FetchOutcome {
        Fetched = "fetched",
        /// The URL or its address is not allowed.
        Refused = "refused",
        Failed = "failed",
        /// Too many others.
        Busy = "busy",
    }
}

#[derive(Debug)]
pub struct FetchTurns {
    pub turns: Arc<SharedPlaces>,
    counts: [[Counter; FetchOutcome::ALL.len()]; FetchKind::ALL.len()],
}

/// Proves that its holder can fetch.
#[derive(Debug)]
pub struct FetchTurn {
    pub(crate) kind: FetchKind,
    pub(crate) place: HeldPlace,
    _share: Option<[Share; 2]>,
}

impl Default for FetchTurns {
    fn default() -> Self {
        Self { turns: SharedPlaces::new(TURNS), counts: Default::default() }
    }
}

impl FetchTurns {
    /// Waits for a turn; `None` if too many others wait, or it takes too long.
    pub async fn begin(
        &self,
        kind: FetchKind,
        claimant: Claimant,
        share: Option<[Share; 2]>,
    ) -> Option<FetchTurn> {
        let Ok(place) = self.turns.take(claimant).await else {
            self.note(kind, FetchOutcome::Busy);
            return None;
        };
        Some(FetchTurn { kind, place, _share: share })
    }

    pub(crate) fn note(&self, kind: FetchKind, outcome: FetchOutcome) {
        self.counts[kind as usize][outcome as usize].add(1);
    }

    pub fn count(&self, kind: FetchKind, outcome: FetchOutcome) -> u64 {
        self.counts[kind as usize][outcome as usize].get()
    }

    /// Requests that have a turn or wait for one.
    pub fn under_way(&self) -> usize {
        self.turns.held() + self.turns.waiting()
    }
}
