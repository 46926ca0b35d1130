//! How long we wait for a server, also for one that only drips to keep us waiting (D49).

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// The limit for a connection, with name resolution and TLS.
    pub connect: Duration,
    /// The limit for the next bytes.
    pub idle: Duration,
    /// The limit for the whole of one `get`, redirects included.
    pub total: Duration,
    /// The time after which a body must have come at the slowest rate that we wait for, and again in each such time
    /// (D49).
    pub pace: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(20),
            total: Duration::from_secs(60),
            pace: Duration::from_secs(15),
        }
    }
}

/// Bytes a second of signers files, checksums files and what a forge says of a release.
pub(crate) const DOCUMENT_RATE: u64 = 1 << 10;
pub(crate) const ASSET_RATE: u64 = 16 << 10;

/// Measures what came since the window began. On average over each window it must be the rate, or more: a file server
/// that drips must not hold a turn for as long as the whole may take.
pub(super) struct Pace {
    pub(super) bytes_per_second: u64,
    pub(super) window: Duration,
    begun: Instant,
    pub(super) bytes: u64,
}

impl Pace {
    pub(super) fn start(bytes_per_second: u64, window: Duration) -> Self {
        Self { bytes_per_second, window, begun: Instant::now(), bytes: 0 }
    }

    /// The time at which enough must have come.
    pub(super) fn end(&self) -> Instant {
        self.begun + self.window
    }

    /// Ends a window, and begins the next one if enough came in this one.
    pub(super) fn begin_next(&mut self) -> bool {
        let enough = u128::from(self.bytes_per_second) * self.window.as_millis() / 1_000;
        let is_enough = u128::from(self.bytes) >= enough;
        *self = Self::start(self.bytes_per_second, self.window);
        is_enough
    }
}
