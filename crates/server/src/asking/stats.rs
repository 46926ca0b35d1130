//! What one witness has cosigned, for metrics.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use countersign_core::{
    log::{checkpoint::Cosignature, policy::Policy},
    values::key::PublicKey,
};

use crate::counting::Counter;

#[derive(Debug)]
pub struct CosigningStats {
    /// In the policy.
    pub name: String,
    pub key: PublicKey,
    size: AtomicU64,
    at: Mutex<Option<Instant>>,
    pub failures: Counter,
    /// Whether it said last that it cosigns nothing more until its operator decides.
    pub is_stopped: AtomicBool,
}

impl CosigningStats {
    /// For all witnesses, also for those that post.
    pub fn of(policy: &Policy) -> Vec<Arc<Self>> {
        let witnesses = policy.witnesses().iter().map(|witness| {
            Arc::new(Self {
                name: witness.name.clone(),
                key: witness.key.key(),
                size: AtomicU64::new(0),
                at: Mutex::new(None),
                failures: Counter::default(),
                is_stopped: AtomicBool::new(false),
            })
        });
        witnesses.collect()
    }

    pub fn note_cosigned(all: &[Arc<Self>], size: u64, added: &[Cosignature]) {
        for cosignature in added {
            if let Some(stats) = all.iter().find(|stats| stats.key == cosignature.witness.key()) {
                stats.size.fetch_max(size, Ordering::Relaxed);
                *stats.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            }
        }
    }

    /// Of the newest checkpoint that it has cosigned since the start.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Since it has cosigned last.
    pub fn since(&self) -> Option<Duration> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
    }
}
