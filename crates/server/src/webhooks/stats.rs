//! The counters of a webhook.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::settings::WebhookName;
use crate::counting::{Counter, named};

named! {
    pub enum DeliveryOutcome {
        Delivered = "delivered",
        /// Not sent: the URL or its address is not allowed.
        Refused = "refused",
        Failed = "failed",
    }
}

#[derive(Debug)]
pub struct WebhookStats {
    pub name: WebhookName,
    counts: [Counter; DeliveryOutcome::ALL.len()],
    is_failing: AtomicBool,
    /// The log position of the newest commit that needs nothing more; the least number while it is unknown.
    done: AtomicI64,
}

const UNKNOWN: i64 = i64::MIN;

impl WebhookStats {
    pub(super) fn new(name: WebhookName) -> Self {
        Self {
            name,
            counts: Default::default(),
            is_failing: AtomicBool::new(false),
            done: AtomicI64::new(UNKNOWN),
        }
    }

    pub fn count(&self, outcome: DeliveryOutcome) -> u64 {
        self.counts[outcome as usize].get()
    }

    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// How many commits it has yet to deal with, in a log that ends at this position.
    pub fn behind(&self, end: i64) -> Option<i64> {
        let done = self.done.load(Ordering::Relaxed);
        (done != UNKNOWN).then(|| (end - 1 - done).max(0))
    }

    pub(super) fn note(&self, outcome: DeliveryOutcome) {
        self.counts[outcome as usize].add(1);
        self.is_failing.store(outcome != DeliveryOutcome::Delivered, Ordering::Relaxed);
    }

    /// Another server delivers.
    pub(super) fn forget_done(&self) {
        self.done.store(UNKNOWN, Ordering::Relaxed);
    }

    pub(super) fn note_done(&self, position: i64) {
        self.done.store(position, Ordering::Relaxed);
    }
}
