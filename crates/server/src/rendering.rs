//! Makes a few pages at a time, outside the runtime, so that visitors of pages do not slow down programs.

use std::{sync::Arc, thread, time::Duration};

use crate::{
    error::ApiError,
    limits::places::{Claimant, PlaceRules, SharedPlaces},
    sending::run_beside,
};

/// How long a visitor waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST: usize = 4;
/// How many visitors can wait. If many come from one address, others go first.
const MAX_WAITING: usize = 128;
/// How many can wait at one address. A browser asks for fewer, and a flood is turned away before it costs anything.
pub const MAX_WAITING_EACH: usize = 8;

#[derive(Debug)]
pub struct Renderings {
    pub turns: Arc<SharedPlaces>,
}

impl Default for Renderings {
    /// Leaves half of the processors to other work.
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self::new((processors / 2).clamp(1, MOST), PATIENCE)
    }
}

impl Renderings {
    pub fn new(most: usize, patience: Duration) -> Self {
        // Work that has begun cannot be stopped, so a visitor never loses a turn.
        let rules = PlaceRules {
            total: most,
            share: most,
            strangers: most,
            waiting: MAX_WAITING,
            max_wait: patience,
            grace: None,
            pace: None,
        };
        Self { turns: SharedPlaces::new(rules) }
    }

    /// Runs `render` when it is its turn. Work that has begun continues without its visitor, and keeps its turn.
    pub async fn run<T: Send + 'static>(
        &self,
        visitor: Claimant,
        render: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.turns.check_waiting(&visitor, MAX_WAITING_EACH)?;
        run_beside(self.turns.take(visitor).await?, render).await
    }
}
