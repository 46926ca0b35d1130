//! The logs that a witness knows from the lists of a network (D272), and how often each of them can ask (D273).

use std::time::Duration;

use countersign_core::log::network::{ListedLog, NotTaken};
use countersign_store::budget::{Bucket, Rate};
use thiserror::Error;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A log can ask as often at once as in a whole hour, and never less often than this.
const HOURS: u64 = 24;
const LEAST_BURST: u64 = 10;
/// So many refused logs are named. A list can have any number.
const NAMED: usize = 8;

/// How often a log can ask. Only a cosignature counts, so no one can use up what the log has by wrong requests. Anyone
/// can send the newest checkpoint once more, so that counts by itself and never keeps out one that is larger.
#[derive(Debug)]
pub(super) struct AskingRate {
    per_day: u32,
    rate: Rate,
    larger: Bucket,
    repeated: Bucket,
}

/// A log has asked more often than its list says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the list of its network lets this log ask for {per_day} cosignatures a day, and it has asked for more: try again in \
     {seconds} seconds"
)]
pub struct AskedTooOften {
    per_day: u32,
    pub seconds: u64,
}

impl AskingRate {
    pub(super) fn of(per_day: u32) -> Self {
        let count = u64::from(per_day);
        let rate = Rate::new(count, DAY, (count / HOURS).max(LEAST_BURST));
        Self { per_day, rate, larger: Bucket::default(), repeated: Bucket::default() }
    }

    /// Takes one cosignature. `now` is the time since any fixed moment.
    pub(super) fn take(&self, is_larger: bool, now: Duration) -> Result<(), AskedTooOften> {
        let bucket = if is_larger { &self.larger } else { &self.repeated };
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        bucket.take(self.rate, now).map_err(|wait| {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            AskedTooOften { per_day: self.per_day, seconds }
        })
    }
}

/// What became of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenList {
    /// Logs that were not known before.
    pub new: usize,
    /// How many logs were refused.
    pub refused: usize,
    /// The first of them.
    pub named: Vec<UntakenLog>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntakenLog {
    pub origin: String,
    pub reason: NotTaken,
}

impl TakenList {
    pub(super) fn refuse(&mut self, listed: &ListedLog, reason: NotTaken) {
        self.refused += 1;
        if self.named.len() < NAMED {
            self.named.push(UntakenLog { origin: listed.key.name().to_owned(), reason });
        }
    }
}
