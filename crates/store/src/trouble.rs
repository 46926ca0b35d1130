//! Whether something failed lately.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::clock::uptime_nanos;

/// A failure counts for so long, unless something succeeds before. Not for ever: a server that receives no changes
/// any more would never find out that its disk has room again.
pub const MEMORY: Duration = Duration::from_secs(30);

/// Whether something failed the last time, and not long ago.
#[derive(Debug, Default)]
pub struct RecentFailure {
    /// The time of the failure, in nanoseconds of our uptime; 0 if the last time went well.
    failed_at: AtomicU64,
}

impl RecentFailure {
    pub fn note(&self, is_ok: bool, now: Instant) {
        let failed_at = if is_ok { 0 } else { uptime_nanos(now).max(1) };
        self.failed_at.store(failed_at, Ordering::Relaxed);
    }

    pub fn is_recent(&self, now: Instant) -> bool {
        let failed_at = self.failed_at.load(Ordering::Relaxed);
        let memory = u64::try_from(MEMORY.as_nanos()).unwrap_or(u64::MAX);
        failed_at != 0 && uptime_nanos(now).saturating_sub(failed_at) < memory
    }
}
