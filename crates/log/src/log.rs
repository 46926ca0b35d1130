//! The log at work: a thread behind the store, and everything that others ask of it.

use std::{
    sync::{
        Arc, Mutex, OnceLock, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{Builder, JoinHandle},
    time::Instant,
};

use arc_swap::ArcSwapOption;
use countersign_core::{
    log::{
        checkpoint::{Checkpoint, Cosignature, SignedCheckpoint},
        note::NoteSignature,
        policy::Policy,
        tile::TileName,
        tree::{Hash, Tree, empty_root},
    },
    proof::staple::Staple,
    values::{path::RepoPath, verifier_key::VerifierKey},
};
use countersign_store::{Head, Store, commit_feed::FeedWaker};
use tokio::sync::watch;

use crate::{
    cache::LogCache,
    checkpoints::{CheckpointRound, Checkpoints, CosignError},
    error::LogError,
    follower::{LogFollower, LogPace},
    settings::LogOptions,
    staples::{IndexDigests, NoStaple},
    state::{LogFigures, LogState, Witnessed, lock},
    tiles::NoTile,
};

/// Dropping it ends its thread.
#[derive(Debug)]
pub struct TransparencyLog {
    shared: Arc<LogState>,
    digests: IndexDigests,
    empty: Option<SignedCheckpoint>,
    waker: FeedWaker,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl TransparencyLog {
    /// Begins to follow the store. Reading the caches happens in the log's own thread.
    pub fn start(store: &Store, options: LogOptions) -> Result<Self, LogError> {
        let LogOptions {
            dir,
            signer,
            keeper,
            checkpoint_every,
            heartbeat_every,
            policy,
            waits_for_witnesses,
        } = options;
        let cache = LogCache::open(store.disk(), &dir)?;
        // It contradicts nothing, so it can be signed at any time.
        let empty = Checkpoint { origin: signer.key().name().to_owned(), size: 0, root: empty_root() };
        let empty = waits_for_witnesses.then(|| signer.sign(empty).ok()).flatten();
        let shared = Arc::new(LogState {
            key: signer.key().clone(),
            tree: RwLock::new(Tree::default()),
            leaves: OnceLock::from(cache.leaves().clone()),
            checkpoints: Mutex::new(Checkpoints::new(signer.key().clone(), keeper, policy)),
            proven: ArcSwapOption::empty(),
            newest: ArcSwapOption::empty(),
            covered: AtomicU64::new(0),
            rounds: watch::Sender::default(),
            sizes: watch::Sender::default(),
            last_round: Mutex::new(None),
            started: Instant::now(),
            trouble: ArcSwapOption::empty(),
            witnessed: Mutex::default(),
            is_allowed_to_sign: AtomicBool::new(!waits_for_witnesses),
            is_stopping: AtomicBool::new(false),
        });
        let feed = store.follow_commits();
        let waker = feed.waker();
        let pace = LogPace { checkpoint_every, heartbeat_every };
        let follower = LogFollower::new(Arc::clone(&shared), feed, cache, signer, pace);
        let thread = Builder::new().name("log-follower".to_owned()).spawn(move || follower.run());
        let thread = Mutex::new(Some(thread.map_err(LogError::cache(&dir))?));
        Ok(Self { shared, digests: IndexDigests::default(), empty, waker, thread })
    }

    /// The key that verifies its checkpoints. Its name is the origin.
    pub fn key(&self) -> &VerifierKey {
        &self.shared.key
    }

    /// The witnesses and their quorum.
    pub fn policy(&self) -> Option<Policy> {
        self.shared.checkpoints().policy().cloned()
    }

    /// The newest checkpoint as a note, with the cosignatures that it has.
    pub fn checkpoint_note(&self) -> Option<Arc<String>> {
        self.shared.newest.load_full()
    }

    /// The newest checkpoint, for witnesses to cosign.
    pub fn newest_checkpoint(&self) -> Option<SignedCheckpoint> {
        self.shared.checkpoints().newest().map(|newest| newest.signed.clone())
    }

    /// The checkpoint of no commits, to ask a witness what it has seen. Only if the log waits for witnesses.
    pub fn empty_checkpoint(&self) -> Option<SignedCheckpoint> {
        self.empty.clone()
    }

    /// The newest checkpoint with enough cosignatures, for which staples are made.
    pub fn cosigned_checkpoint(&self) -> Option<SignedCheckpoint> {
        self.shared.checkpoints().cosigned().map(|cosigned| cosigned.signed.clone())
    }

    /// The same as a note, for those who copy the log.
    pub fn cosigned_note(&self) -> Option<String> {
        self.shared.checkpoints().cosigned().map(|cosigned| cosigned.note().to_string())
    }

    /// Tells when witnesses should be asked: whenever there is a new checkpoint, and again at each heartbeat.
    pub fn rounds(&self) -> watch::Receiver<CheckpointRound> {
        self.shared.rounds.subscribe()
    }

    /// Tells how many commits have a leaf, signed or not.
    pub fn sizes(&self) -> watch::Receiver<u64> {
        self.shared.sizes.subscribe()
    }

    /// The root of the first `size` commits, signed or not; `None` before there are so many.
    pub fn root_at(&self, size: u64) -> Option<Hash> {
        self.shared.tree().root(size)
    }

    /// The proof that the first `size` commits begin with the first `old`; `None` if a checkpoint does not cover them.
    pub fn prove_consistency(&self, old: u64, size: u64) -> Option<Vec<Hash>> {
        let is_covered = size <= self.shared.covered.load(Ordering::Acquire);
        self.shared.tree().consistency(old, size).filter(|_| is_covered)
    }

    /// Adds what witnesses say about the checkpoint of this size, as far as the policy knows their keys. Late ones are
    /// welcome. Waits for the disk, or for the database of nodes, so a thread of an async runtime cannot call it.
    pub fn add_cosignatures(
        &self,
        size: u64,
        lines: &[NoteSignature],
    ) -> Result<Vec<Cosignature>, CosignError> {
        let mut checkpoints = self.shared.checkpoints();
        let added = checkpoints.add_cosignatures(size, lines)?;
        self.shared.show(&checkpoints);
        Ok(added)
    }

    /// Someone shows that a witness has seen so many commits of this log. If enough witnesses have seen more than there
    /// are, the log signs nothing (D88, D190). Anyone can show again what a witness said earlier, so less changes nothing.
    pub fn note_witnessed(&self, witness: &VerifierKey, size: u64) {
        let earlier = lock(&self.shared.witnessed).get(&witness.key()).map_or(0, |earlier| earlier.size);
        self.note_answered(witness, size.max(earlier));
    }

    /// The witness itself says now how many it has seen.
    pub fn note_answered(&self, witness: &VerifierKey, size: u64) {
        let said = Witnessed { name: witness.name().to_owned(), size };
        lock(&self.shared.witnessed).insert(witness.key(), said);
        self.wake();
    }

    /// The witnesses were asked what they have seen; see [`LogOptions::waits_for_witnesses`].
    pub fn allow_signing(&self) {
        self.shared.is_allowed_to_sign.store(true, Ordering::Release);
        self.wake();
    }

    /// `head` is any state that is not older than the newest checkpoint. Reads from disk at times.
    pub fn staple(&self, head: &Head, index: &RepoPath) -> Result<Staple, NoStaple> {
        self.shared.staple(&self.digests, head, index)
    }

    /// Bundles of entries are read from disk.
    pub fn tile(&self, name: &TileName) -> Result<Vec<u8>, NoTile> {
        self.shared.tile(name)
    }

    pub fn figures(&self) -> LogFigures {
        self.shared.figures()
    }

    /// Why it does not go on, or does not sign.
    pub fn trouble(&self) -> Option<Arc<LogError>> {
        self.shared.trouble.load_full()
    }

    /// Ends the thread, and returns when it has ended.
    pub fn stop(&self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        self.wake();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    fn wake(&self) {
        self.waker.wake();
        // It may also rest after a failure.
        if let Some(thread) = &*lock(&self.thread) {
            thread.thread().unpark();
        }
    }
}

impl Drop for TransparencyLog {
    fn drop(&mut self) {
        self.stop();
    }
}
