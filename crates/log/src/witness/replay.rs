//! A log that is derived here from what a mirror has received.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use countersign_core::{log::tree::Hash, values::verifier_key::VerifierKey};
use countersign_store::Store;
use tokio::sync::watch;

use crate::{
    error::LogError,
    keeper::{CheckpointKeeper, KeepError, KeptNotes},
    log::TransparencyLog,
    settings::LogOptions,
};

/// How long commits can be in the journal of a log before a checkpoint has to cover them.
const WITHHELD_AFTER: Duration = Duration::from_secs(120);
/// Sizes that are remembered, each with its time.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
const MAX_SAMPLES: usize = 64;

#[derive(Debug, Clone)]
pub struct LogReplay {
    log: Arc<TransparencyLog>,
    /// How many commits there were, oldest first.
    samples: Arc<Mutex<VecDeque<(Instant, u64)>>>,
}

/// A keeper that keeps nothing: the log is derived again at each start.
#[derive(Debug)]
struct Nothing;

impl LogReplay {
    /// Starts a replay. `dir` is for files that can be deleted.
    pub fn start(store: &Store, dir: &Path, key: VerifierKey) -> Result<Self, LogError> {
        let options = LogOptions::of_another(dir, key, Box::new(Nothing));
        Ok(Self { log: Arc::new(TransparencyLog::start(store, options)?), samples: Arc::default() })
    }

    pub fn key(&self) -> &VerifierKey {
        self.log.key()
    }

    /// Commits that were replayed.
    pub fn len(&self) -> u64 {
        *self.log.sizes().borrow()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The root of the first `size` commits; `None` before there are so many.
    pub fn root_at(&self, size: u64) -> Option<Hash> {
        self.log.root_at(size)
    }

    /// Remembers how many commits there are at this time. To be called every few seconds.
    pub fn note_size(&self, now: Instant) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = samples.back().is_none_or(|(at, _)| now.saturating_duration_since(*at) >= SAMPLE_EVERY);
        if is_due {
            samples.push_back((now, self.len()));
        }
        if samples.len() > MAX_SAMPLES {
            samples.pop_front();
        }
    }

    /// Whether the journal has had more than `size` commits for so long that the log hides them.
    pub fn has_withheld(&self, size: u64, now: Instant) -> bool {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let since = samples.iter().find(|(_, len)| *len > size);
        since.is_some_and(|(at, _)| now.saturating_duration_since(*at) > WITHHELD_AFTER)
    }

    /// Tells how many commits were replayed.
    pub fn sizes(&self) -> watch::Receiver<u64> {
        self.log.sizes()
    }

    /// Returns when its thread has ended.
    pub fn stop(&self) {
        self.log.stop();
    }
}

impl CheckpointKeeper for Nothing {
    fn load(&mut self) -> Result<KeptNotes, KeepError> {
        Ok(KeptNotes::default())
    }

    fn place(&self) -> String {
        String::new()
    }

    fn keep_newest(&mut self, _before: u64, _note: &str) -> Result<(), KeepError> {
        Ok(())
    }

    fn keep_cosigned(&mut self, _note: &str) -> Result<(), KeepError> {
        Ok(())
    }
}
