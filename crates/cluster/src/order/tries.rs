//! How often one thing is tried.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::error::DatabaseError;

/// The pauses between two tries, growing.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
];

/// The tries of one exchange, within a limit of time.
#[derive(Debug)]
pub(super) struct Tries {
    limit: Duration,
    started: Instant,
    made: usize,
}

impl Tries {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, started: Instant::now(), made: 0 }
    }

    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.started.elapsed())
    }

    /// The time for one try: its answer may be lost, and then there must be time for another one.
    pub(super) fn share(&self) -> Duration {
        (self.limit * 2 / 5).min(self.left())
    }

    /// Gives the error back if there is no use or no time for another try.
    pub(super) async fn pause(&mut self, error: DatabaseError) -> Result<(), DatabaseError> {
        let pause = PAUSES[self.made.min(PAUSES.len() - 1)];
        self.made += 1;
        if !error.is_passing() || self.left() <= pause {
            return Err(error);
        }
        sleep(pause).await;
        Ok(())
    }
}
