//! All listeners: how many there are, how they wake, and how much work they cause.

use std::{sync::Arc, time::Duration};

use countersign_store::recent_commits::RecentCommits;
use tokio::sync::watch;

use crate::{
    counting::Counter,
    limits::semaphore::{Claimant, FairSemaphore, Permit, SemaphoreRules},
};

/// The time between two looks, counted over all listeners, while much happens.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct Audience {
    pub places: Arc<FairSemaphore>,
    /// Listeners since the start.
    admitted: Counter,
    /// How many events were sent, over all listeners.
    pub sent: Counter,
    /// The position after the newest commit, for all listeners that wait.
    pub(super) end: Arc<watch::Sender<i64>>,
}

/// A place among the listeners. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct ListenerSlot {
    pub(super) events: Arc<Audience>,
    pub(super) held: Permit,
    /// Spreads listeners that began to rest together.
    spread: u32,
}

impl Audience {
    /// Must be called inside a Tokio runtime.
    pub fn start(commits: &RecentCommits, max_listeners: usize) -> Self {
        let end = Arc::new(watch::Sender::new(commits.end()));
        tokio::spawn(pass_on(commits.subscribe(), Arc::clone(&end)));
        // The limits of addresses bound how many listeners one address has.
        let rules = SemaphoreRules { grace: Some(Duration::ZERO), ..SemaphoreRules::of(max_listeners) };
        Self {
            places: FairSemaphore::new(rules),
            admitted: Counter::default(),
            sent: Counter::default(),
            end,
        }
    }

    /// Tells the position behind the newest commit, a little after the store itself. The writer does not wake those who
    /// wait for it.
    pub fn subscribe(&self) -> watch::Receiver<i64> {
        self.end.subscribe()
    }

    pub fn listeners(&self) -> usize {
        self.places.held()
    }

    pub(super) fn admit(self: &Arc<Self>, claimant: Claimant) -> Option<ListenerSlot> {
        let held = self.places.try_take(claimant).ok()?;
        let spread = (self.admitted.add(1) % 8) as u32;
        Some(ListenerSlot { events: Arc::clone(self), held, spread })
    }
}

impl ListenerSlot {
    pub(super) fn rest(&self) -> Duration {
        let listeners = u32::try_from(self.events.listeners()).unwrap_or(u32::MAX);
        // Between 12/16 and 19/16.
        BETWEEN_LOOKS * listeners * (12 + self.spread) / 16
    }
}

/// Waking a thousand tasks takes a while. The writer wakes only this task, which wakes the others.
async fn pass_on(mut commits: watch::Receiver<i64>, end: Arc<watch::Sender<i64>>) {
    while commits.changed().await.is_ok() {
        end.send_replace(*commits.borrow_and_update());
    }
}
