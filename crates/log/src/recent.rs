//! What became of checkpoints in the last hour, minute by minute, for people. It is in memory only.

use std::{collections::VecDeque, time::Duration};

/// The most minutes that are remembered.
pub const RECENT_MINUTES: usize = 60;

/// A minute in which there was a checkpoint, or the newest one was given to witnesses again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointMinute {
    /// Minutes since 1970.
    pub minute: u64,
    /// Whether a checkpoint had new commits.
    pub has_new: bool,
    /// Whether enough witnesses cosigned one.
    pub is_cosigned: bool,
}

/// The recent past of the log, since it was started.
#[derive(Debug, Clone, Default)]
pub struct RecentLog {
    /// The time at which the newest checkpoint was made or seen, since 1970, and its size.
    pub newest: Option<(u64, Duration)>,
    /// Oldest first.
    pub minutes: VecDeque<CheckpointMinute>,
}

impl RecentLog {
    /// A checkpoint was made, or seen for the first time. `now` is the time since 1970.
    pub fn note_made(&mut self, size: u64, now: Duration) {
        self.newest = Some((size, now));
        self.note(now, |minute| minute.has_new = true);
    }

    /// Enough witnesses have cosigned a checkpoint, perhaps again.
    pub fn note_cosigned(&mut self, now: Duration) {
        self.note(now, |minute| minute.is_cosigned = true);
    }

    /// The newest checkpoint is given to witnesses again.
    pub fn note_round(&mut self, now: Duration) {
        self.note(now, |_| {});
    }

    fn note(&mut self, now: Duration, change: impl FnOnce(&mut CheckpointMinute)) {
        let now = now.as_secs() / 60;
        // A clock that was set back begins anew.
        if self.minutes.back().is_some_and(|last| last.minute > now) {
            self.minutes.clear();
        }
        if self.minutes.back().is_none_or(|last| last.minute < now) {
            self.minutes.push_back(CheckpointMinute { minute: now, has_new: false, is_cosigned: false });
        }
        while self.minutes.front().is_some_and(|first| first.minute + RECENT_MINUTES as u64 <= now) {
            self.minutes.pop_front();
        }
        if let Some(minute) = self.minutes.back_mut() {
            change(minute);
        }
    }
}
