//! What the log's thread shares with those who ask.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::{collections::BTreeMap, time::Duration, time::Instant};

use arc_swap::ArcSwapOption;
use countersign_core::log::{checkpoint::InclusionProof, record::Leaf, status::Statuses, tree::Tree};
use countersign_core::values::verifier_key::VerifierKey;
use countersign_store::machine::clock::{lock, read, write};
use tokio::sync::watch;

use crate::checkpoints::{CheckpointRound, Checkpoints};
use crate::{cache::LeafFile, error::LogError, error::LogRefusal, seen::SeenMemory};

#[derive(Debug)]
pub(crate) struct LogState {
    pub(crate) key: VerifierKey,
    pub(crate) tree: RwLock<Tree>,
    pub(crate) leaves: LeafFile,
    pub(crate) checkpoints: Mutex<Checkpoints>,
    /// The state for which staples are made.
    pub(crate) proven: ArcSwapOption<ProvenState>,
    /// The newest checkpoint as it is served.
    pub(crate) newest: ArcSwapOption<String>,
    /// Leaves that the newest checkpoint covers and that are there.
    pub(crate) covered: AtomicU64,
    pub(crate) rounds: watch::Sender<CheckpointRound>,
    /// Leaves that there are.
    pub(crate) sizes: watch::Sender<u64>,
    pub(crate) last_round: Mutex<Option<Instant>>,
    pub(crate) started: Instant,
    /// Why the log does not go on or does not sign.
    pub(crate) trouble: ArcSwapOption<LogError>,
    /// What each witness says it has seen, since the start, by its name.
    pub(crate) answered: Mutex<BTreeMap<String, u64>>,
    /// What witnesses have seen, as far as the log must not forget it.
    pub(crate) seen: Mutex<SeenMemory>,
    /// Whether the tree was compared with what witnesses have seen.
    pub(crate) is_compared: AtomicBool,
    /// Becomes true when the checkpoints were read.
    pub(crate) loaded: watch::Sender<bool>,
    pub(crate) is_allowed_to_sign: AtomicBool,
    pub(crate) is_stopping: AtomicBool,
}

/// One checkpoint, ready for proofs.
#[derive(Debug)]
pub(crate) struct ProvenState {
    pub(crate) leaf: Leaf,
    pub(crate) proof: InclusionProof,
    pub(crate) statuses: Statuses,
}

/// How the log is doing.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogFigures {
    /// Commits that have a leaf.
    pub size: u64,
    /// Commits that the newest checkpoint covers.
    pub signed_size: u64,
    /// The size of the newest checkpoint with enough cosignatures.
    pub cosigned_size: u64,
    /// The time since a checkpoint was made or given to witnesses again; before the first time, since the start.
    pub since_checkpoint: Duration,
    /// Whether the log does not go on or does not sign.
    pub is_in_trouble: bool,
    /// Commits that were signed or seen, and that the log does not continue; 0 if there are none.
    pub lost_size: u64,
}

impl LogState {
    pub(crate) fn tree(&self) -> RwLockReadGuard<'_, Tree> {
        read(&self.tree)
    }

    pub(crate) fn tree_mut(&self) -> RwLockWriteGuard<'_, Tree> {
        write(&self.tree)
    }

    pub(crate) fn checkpoints(&self) -> MutexGuard<'_, Checkpoints> {
        lock(&self.checkpoints)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Lets readers see the checkpoints as they are now.
    pub(crate) fn show(&self, checkpoints: &Checkpoints) {
        let newest = checkpoints.newest();
        self.newest.store(newest.map(|issued| Arc::new(issued.note().to_string())));
        let covered = newest.filter(|issued| issued.view.is_some()).map_or(0, |issued| issued.size());
        self.covered.store(covered, Ordering::Release);
        let proven = checkpoints.cosigned().and_then(|issued| {
            let (view, proof) = (issued.view.as_ref()?, issued.proof()?);
            Some(ProvenState { leaf: view.leaf.clone(), proof, statuses: view.statuses.clone() })
        });
        // Until a checkpoint of another node has what proofs need, they are made for the one before.
        if let Some(proven) = proven {
            self.proven.store(Some(Arc::new(proven)));
        }
    }

    /// Tells those who ask witnesses.
    pub(crate) fn begin_round(&self, size: u64) {
        *lock(&self.last_round) = Some(Instant::now());
        self.rounds.send_modify(|round| *round = CheckpointRound { size, round: round.round + 1 });
    }

    pub(crate) fn report(&self, error: LogError) {
        let known = self.trouble.load();
        if known.as_ref().is_none_or(|known| known.to_string() != error.to_string()) {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(%error, cause, "the transparency log signs no checkpoints");
            self.trouble.store(Some(Arc::new(error)));
        }
    }

    pub(crate) fn note_recovery(&self) {
        if self.trouble.load().is_some() {
            self.trouble.store(None);
            tracing::info!("the transparency log goes on");
        }
    }

    /// Why the log must not sign, as far as is known.
    pub(crate) fn refusal(&self) -> Option<LogRefusal> {
        if let Some(LogError::Refused(refusal)) = self.trouble.load().as_deref() {
            return Some(refusal.clone());
        }
        let is_open = !self.is_compared.load(Ordering::Acquire) && lock(&self.seen).has_guard();
        is_open.then_some(LogRefusal::NotCompared)
    }
}
