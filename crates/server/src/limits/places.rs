//! Places that many want and few can have: turns to fetch, downloads, listeners, large bodies, pages (D46).
//!
//! A place belongs to an address, a project and a key, as far as they are known. Each of them is limited to its share.
//! When all places are taken, a newcomer that holds fewer takes the place of a holder that has more than its part or is
//! too slow. Among those that wait, the one that holds least is next.

mod rules;
mod state;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use thiserror::Error;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

pub use self::rules::{Claimant, MinimumPace, PlaceRules};
use self::state::{Entered, PlaceState, Standing};
use crate::counting::Counter;

/// How often a waiting newcomer checks whether a holder has become too slow.
pub const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Too many others hold or want a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPlace;

/// The place went to another claimant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this request had to make room for others that waited. Try again in a moment")]
pub struct GaveWay;

#[derive(Debug)]
pub struct SharedPlaces {
    rules: PlaceRules,
    state: Mutex<PlaceState>,
    /// How many claimants got no place since the start.
    pub refused: Counter,
}

/// A place, or a position among those that wait. Dropping it gives it back.
#[derive(Debug)]
pub struct HeldPlace {
    places: Arc<SharedPlaces>,
    number: u64,
    standing: watch::Receiver<Standing>,
    moved: Arc<Counter>,
}

impl SharedPlaces {
    pub fn new(rules: PlaceRules) -> Arc<Self> {
        Arc::new(Self { rules, state: Mutex::default(), refused: Counter::default() })
    }

    /// Takes a place, or waits for one.
    pub async fn take(self: &Arc<Self>, claimant: Claimant) -> Result<HeldPlace, NoPlace> {
        let mut place = self.enter(claimant)?;
        let deadline = Instant::now() + self.rules.max_wait;
        loop {
            let standing = *place.standing.borrow();
            match standing {
                Standing::Holds => return Ok(place),
                Standing::Lost => return Err(self.refuse()),
                Standing::Waits => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.refuse());
            }
            let changed = timeout(left.min(BETWEEN_LOOKS), place.standing.changed()).await;
            if changed.is_err() {
                self.lock().admit(&self.rules, place.number, Instant::now());
            }
        }
    }

    /// Refuses a claimant that waits for so many places already. That costs less than to wait, and to be sent away when
    /// too many others wait as well.
    pub fn check_waiting(&self, claimant: &Claimant, most: usize) -> Result<(), NoPlace> {
        let waiting = self.lock().count_waiting(claimant);
        if waiting < most { Ok(()) } else { Err(self.refuse()) }
    }

    /// Takes a place if one is free now, or can be taken from a holder.
    pub fn try_take(self: &Arc<Self>, claimant: Claimant) -> Result<HeldPlace, NoPlace> {
        let place = self.enter(claimant)?;
        let standing = *place.standing.borrow();
        if standing == Standing::Holds { Ok(place) } else { Err(self.refuse()) }
    }

    fn enter(self: &Arc<Self>, claimant: Claimant) -> Result<HeldPlace, NoPlace> {
        let moved = Arc::<Counter>::default();
        let entered = self.lock().enter(&self.rules, claimant, Arc::clone(&moved), Instant::now());
        let Entered { number, standing } = entered.ok_or_else(|| self.refuse())?;
        Ok(HeldPlace { places: Arc::clone(self), number, standing, moved })
    }

    fn refuse(&self) -> NoPlace {
        self.refused.add(1);
        NoPlace
    }

    pub fn total(&self) -> usize {
        self.rules.total
    }

    pub fn held(&self) -> usize {
        self.lock().totals.holding
    }

    pub fn waiting(&self) -> usize {
        self.lock().totals.waiting
    }

    /// How many holders lost their place to others since the start.
    pub fn gave_way(&self) -> u64 {
        self.lock().gave_way
    }

    /// Whether no place is held or awaited, and no claimant is remembered.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, PlaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldPlace {
    /// Does `work` until the place is lost.
    pub async fn keep<T>(&self, work: impl Future<Output = T>) -> Result<T, GaveWay> {
        tokio::select! {
            biased;
            () = self.lost() => Err(GaveWay),
            done = work => Ok(done),
        }
    }

    /// Returns when the place went to another claimant.
    pub async fn lost(&self) {
        let mut standing = self.standing.clone();
        if standing.wait_for(|standing| *standing == Standing::Lost).await.is_err() {
            // A dropped sender means that the place has ended, not that it was lost.
            std::future::pending().await
        }
    }

    /// Counts the bytes that the holder has moved, for work that reports its progress.
    pub fn meter(&self) -> Arc<Counter> {
        Arc::clone(&self.moved)
    }
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        self.places.lock().leave(&self.places.rules, self.number);
    }
}
