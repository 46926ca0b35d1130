//! Makes a few pages at a time, outside the runtime, so that visitors of pages do not slow down programs.

use std::{sync::Arc, thread, time::Duration};

use tokio::task::spawn_blocking;

use crate::{
    error::ApiError,
    limits::places::{Claimant, PlaceRules, SharedPlaces},
};

/// How long a visitor waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST: usize = 4;
/// How many visitors can wait. If many come from one address, others go first.
const MAX_WAITING: usize = 256;

#[derive(Debug)]
pub struct Renderings {
    turns: Arc<SharedPlaces>,
}

impl Default for Renderings {
    /// Leaves half of the processors to other work.
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self::new((processors / 2).clamp(1, MOST), PATIENCE)
    }
}

impl Renderings {
    fn new(most: usize, patience: Duration) -> Self {
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

    pub fn turns(&self) -> &SharedPlaces {
        &self.turns
    }

    /// Runs `render` when it is its turn. Work that has begun continues without its visitor, and keeps its turn.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        visitor: Claimant,
        render: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = self.turns.take(visitor).await?;
        let work = spawn_blocking(move || {
            let rendered = render();
            drop(turn);
            rendered
        });
        work.await.map_err(|_| ApiError::panicked())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn whoever_waits_too_long_is_told_to_come_back() {
        let renderings = Renderings::new(1, Duration::from_millis(10));
        let (release, released) = mpsc::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let first = renderings.run(Claimant::default(), move || {
            let _ = begin.send(());
            released.recv().is_ok()
        });
        let second = async {
            begun.await.unwrap();
            let refused = renderings.run(Claimant::default(), || ()).await.unwrap_err();
            release.send(()).unwrap();
            refused
        };
        let (first, refused) = tokio::join!(first, second);
        assert!(first.unwrap());
        assert_eq!((refused.status, refused.retry_after), (StatusCode::SERVICE_UNAVAILABLE, Some(1)));
        assert_eq!(renderings.run(Claimant::default(), || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_panic_gives_its_turn_back() {
        let renderings = Renderings::new(1, Duration::from_secs(30));
        let failed = renderings.run(Claimant::default(), || panic!("on purpose")).await.unwrap_err();
        assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(renderings.run(Claimant::default(), || 7).await.unwrap(), 7);
    }
}
