//! Where the log is found by those who answer for it.

use std::sync::{Arc, OnceLock};

use countersign_log::TransparencyLog;

/// A log. That of another server comes once its key is known.
#[derive(Debug, Clone, Default)]
pub struct LogSlot(Arc<OnceLock<Arc<TransparencyLog>>>);

impl LogSlot {
    pub fn of(log: Option<Arc<TransparencyLog>>) -> Self {
        let slot = Self::default();
        log.into_iter().for_each(|log| slot.set(log));
        slot
    }

    pub fn get(&self) -> Option<&Arc<TransparencyLog>> {
        self.0.get()
    }

    /// Only the first one counts.
    pub fn set(&self, log: Arc<TransparencyLog>) {
        let _ = self.0.set(log);
    }
}
