//! The log at work: a thread behind the store, and everything that others ask of it.

use std::sync::{Arc, Mutex, RwLock, atomic::AtomicBool, atomic::AtomicU64, atomic::Ordering};
use std::{path::Path, thread::Builder, thread::JoinHandle, time::Duration, time::Instant};

use arc_swap::ArcSwapOption;
use countersign_core::log::checkpoint::{Checkpoint, CheckpointError, Cosignature, SignedCheckpoint};
use countersign_core::log::tree::{Hash, Tree, TreeHead, empty_root};
use countersign_core::log::{note::Note, note::NoteSignature, policy::Policy, tile::TileName};
use countersign_core::{proof::bundle::Staple, values::path::RepoPath, values::verifier_key::VerifierKey};
use countersign_store::{Head, Store, machine::clock::lock, writer::commit_feed::FeedWaker};
use tokio::sync::watch;

use crate::checkpoints::{CheckpointRound, Checkpoints, CosignError};
use crate::derivation::{LogBuilder, LogPace};
use crate::error::{AcceptLossError, LogError, LogRefusal, TakeError};
use crate::keeper::{CheckpointFiles, CheckpointKeeper, KeepError, KeptNotes};
use crate::recent::RecentLog;
use crate::staples::{IndexDigests, NoStaple};
use crate::state::{LogFigures, LogState};
use crate::tiles::{NoTile, PackedBundles};
use crate::{cache::LogCache, records::KeptRecords, settings::LogOptions};
use crate::{seen::LogStanding, seen::SeenMemory};

/// The log of a server. Dropping it ends its thread.
#[derive(Debug)]
pub struct TransparencyLog {
    shared: Arc<LogState>,
    digests: IndexDigests,
    packed: PackedBundles,
    empty: Option<SignedCheckpoint>,
    waker: FeedWaker,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl TransparencyLog {
    /// Begins to follow the store. Reading the caches happens in the log's own thread.
    pub fn start(store: &Store, options: LogOptions) -> Result<Self, LogError> {
        let (dir, signer, is_waiting) = (&options.dir, options.signer, options.waits_for_witnesses);
        let key = signer.key().clone();
        let kept = if options.keeper.is_shared() { KeptRecords::All } else { KeptRecords::Newest };
        let cache = LogCache::open(store.disk(), dir, kept)?;
        let mut seen = SeenMemory::new(store.disk(), dir, &key);
        let copied = options.copied.and_then(|bytes| open_own(&Note::parse(&bytes).ok()?, &key).ok());
        if let Some(copied) = copied {
            seen.show("a mirror", copied)?;
        }
        // It contradicts nothing, so it can be signed at any time.
        let empty = Checkpoint { origin: key.name().to_owned(), size: 0, root: empty_root() };
        let empty = is_waiting.then(|| signer.sign(&empty).ok()).flatten();
        let shared = Arc::new(LogState {
            tree: RwLock::new(Tree::default()),
            leaves: cache.leaves().clone(),
            checkpoints: Mutex::new(Checkpoints::new(key.clone(), options.keeper, options.policy)),
            key,
            proven: ArcSwapOption::empty(),
            newest: ArcSwapOption::empty(),
            covered: AtomicU64::new(0),
            rounds: watch::Sender::default(),
            sizes: watch::Sender::default(),
            last_round: Mutex::new(None),
            started: Instant::now(),
            trouble: ArcSwapOption::empty(),
            answered: Mutex::default(),
            seen: Mutex::new(seen),
            is_compared: AtomicBool::new(false),
            loaded: watch::Sender::default(),
            is_allowed_to_sign: AtomicBool::new(!is_waiting),
            is_stopping: AtomicBool::new(false),
        });
        let feed = store.follow_commits();
        let waker = feed.waker();
        let LogOptions { checkpoint_every, heartbeat_every, .. } = options;
        let pace = LogPace { checkpoint_every, heartbeat_every };
        let builder = LogBuilder::new(Arc::clone(&shared), feed, cache, signer, pace);
        let thread = Builder::new().name("log-builder".to_owned()).spawn(move || builder.run());
        let thread = Mutex::new(Some(thread.map_err(LogError::cache(dir))?));
        let (digests, packed) = (IndexDigests::default(), PackedBundles::default());
        Ok(Self { shared, digests, packed, empty, waker, thread })
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

    /// The newest checkpoint with enough cosignatures as a note, for those who copy the log.
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
        drop(checkpoints);
        lock(&self.shared.seen).note_cosigned(added.iter().map(|cosignature| &cosignature.witness))?;
        Ok(added)
    }

    /// Notes that a witness has seen so many commits of this log, as someone shows. The log signs nothing if enough
    /// witnesses have seen what it does not remember to have signed, until it knows that it continues that (D190,
    /// D208). Anyone can show again what a witness said earlier, so less changes nothing. Waits for the disk.
    pub fn note_witnessed(
        &self,
        witness: &VerifierKey,
        size: u64,
        root: Option<Hash>,
    ) -> Result<(), LogError> {
        let known = self.known_size(size)?;
        if size > known {
            let policy = self.policy();
            let answered = lock(&self.shared.answered).clone();
            let signed = self.shared.checkpoints().newest_size();
            let (mut seen, tree) = (lock(&self.shared.seen), self.shared.tree());
            let standing = LogStanding { tree: &tree, signed, policy: policy.as_ref(), answered: &answered };
            seen.claim(witness, (size, root), standing)?;
        }
        self.wake();
        Ok(())
    }

    /// The witness itself says now how many it has seen. Waits for the disk.
    pub fn note_answered(&self, witness: &VerifierKey, size: u64) -> Result<(), LogError> {
        if size > self.known_size(size)? {
            self.note_witnessed(witness, size, None)?;
        } else {
            lock(&self.shared.seen).withdraw(witness)?;
        }
        lock(&self.shared.answered).insert(witness.name().to_owned(), size);
        self.wake();
        Ok(())
    }

    /// Commits that were signed, as far as the log knows. If that is less than `size`, another node may know more.
    fn known_size(&self, size: u64) -> Result<u64, LogError> {
        let mut checkpoints = self.shared.checkpoints();
        let signed = checkpoints.newest_size();
        let signed = if signed < size { checkpoints.look_up_size()? } else { signed };
        drop(checkpoints);
        lock(&self.shared.seen).known(signed)
    }

    /// Takes a checkpoint of this log that someone shows. If its own key has signed it, and it is larger than what the
    /// log remembers, the log signs nothing that does not continue it. Waits for the disk.
    pub fn take_checkpoint(&self, note: &Note, by: &str) -> Result<u64, TakeError> {
        let key = &self.shared.key;
        let signed =
            open_own(note, key).map_err(|source| TakeError::NotOurs { key: key.to_string(), source })?;
        let size = signed.checkpoint().size;
        let known = self.known_size(size)?;
        if size <= known {
            return Err(TakeError::NotNewer { size, known });
        }
        lock(&self.shared.seen).show(by, signed)?;
        self.wake();
        Ok(size)
    }

    /// Whether this witness has ever cosigned a checkpoint of this log, as far as the log remembers.
    pub fn has_cosigned(&self, witness: &VerifierKey) -> bool {
        let policy = self.policy();
        let others = policy.iter().flat_map(|policy| policy.keys_of(witness.name()));
        let keys: Vec<&VerifierKey> = others.chain([witness]).collect();
        lock(&self.shared.seen).has_cosigned(&keys)
    }

    /// Why the log must not sign: it would contradict what it has signed, or what witnesses have seen.
    pub fn refusal(&self) -> Option<LogRefusal> {
        self.shared.refusal()
    }

    /// The operator gives up the commits that the log does not continue, and names how many they are. From then on the
    /// log signs what there is, though others have seen something else. Gives the checkpoints of the lost commits.
    /// Waits for the disk.
    pub fn accept_loss(&self, origin: &str, size: u64) -> Result<Vec<Note>, AcceptLossError> {
        let name = self.shared.key.name();
        if origin != name {
            return Err(AcceptLossError::OtherOrigin(name.to_owned()));
        }
        let lost = self.refusal().and_then(|refusal| refusal.lost_size());
        match lost {
            None => return Err(AcceptLossError::NothingLost),
            Some(lost) if lost != size => return Err(AcceptLossError::OtherSize(lost)),
            Some(_) => {}
        }
        let (mut checkpoints, mut seen) = (self.shared.checkpoints(), lock(&self.shared.seen));
        let tree = self.shared.tree();
        let lost = checkpoints.find_lost(size, |head| tree.root(head.size) == Some(head.root));
        drop(tree);
        let heads: Vec<TreeHead> = lost.iter().map(|issued| issued.checkpoint().head()).collect();
        let notes = lost.iter().map(|issued| issued.note()).chain(seen.shown_note()?).collect();
        seen.accept_loss(size, &heads)?;
        drop(seen);
        checkpoints.lose(&heads);
        self.shared.show(&checkpoints);
        drop(checkpoints);
        tracing::warn!(
            log = name,
            size,
            "the operator gives up commits of the log: it signs others in their place"
        );
        self.wake();
        Ok(notes)
    }

    /// Becomes true when the log knows what it has signed before.
    pub fn loaded(&self) -> watch::Receiver<bool> {
        self.shared.loaded.subscribe()
    }

    /// Time since the start.
    pub fn age(&self) -> Duration {
        self.shared.started.elapsed()
    }

    /// The witnesses were asked what they have seen; see [`LogOptions::waits_for_witnesses`].
    pub fn allow_signing(&self) {
        self.shared.is_allowed_to_sign.store(true, Ordering::Release);
        self.wake();
    }

    /// What the log proves about a release, with a state of the repository that is not older than that: `head` is asked
    /// for it after the proof was chosen. Reads from disk at times.
    pub fn staple(
        &self,
        head: impl FnOnce() -> Arc<Head>,
        index: &RepoPath,
    ) -> (Arc<Head>, Result<Staple, NoStaple>) {
        let proven = self.shared.proven_state();
        let head = head();
        let staple = proven.and_then(|proven| proven.staple(&self.digests, &head, index));
        (head, staple)
    }

    /// Bundles of entries are read from disk.
    pub fn tile(&self, name: &TileName) -> Result<Vec<u8>, NoTile> {
        self.shared.tile(name)
    }

    /// A bundle of entries in gzip (D266).
    pub fn packed_bundle(&self, name: &TileName) -> Result<Arc<[u8]>, NoTile> {
        self.shared.packed_bundle(&self.packed, name)
    }

    pub fn figures(&self) -> LogFigures {
        let shared = &self.shared;
        let checkpoints = shared.checkpoints();
        let (signed_size, cosigned_size) =
            (checkpoints.newest_size(), checkpoints.cosigned().map_or(0, |issued| issued.size()));
        drop(checkpoints);
        LogFigures {
            size: shared.tree().len(),
            signed_size,
            cosigned_size,
            since_checkpoint: lock(&shared.last_round).unwrap_or(shared.started).elapsed(),
            is_in_trouble: shared.trouble.load().is_some(),
            lost_size: shared.refusal().and_then(|refusal| refusal.lost_size()).unwrap_or(0),
        }
    }

    /// What became of checkpoints in the last hour.
    pub fn recent(&self) -> RecentLog {
        self.shared.checkpoints().recent.clone()
    }

    /// Why the log does not go on, or does not sign.
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

/// A checkpoint that the log's own key has signed.
fn open_own(note: &Note, key: &VerifierKey) -> Result<SignedCheckpoint, CheckpointError> {
    SignedCheckpoint::open(note, std::slice::from_ref(key), &[])
}

impl Drop for TransparencyLog {
    fn drop(&mut self) {
        self.stop();
    }
}

// The copy of another server's log: derived from the commits that a mirror has received, with the checkpoints that the
// other server shows.

#[derive(Debug, Clone)]
pub struct LogCopy {
    pub log: Arc<TransparencyLog>,
    offered: Arc<Mutex<Option<Vec<u8>>>>,
}

impl LogCopy {
    /// Starts a copy. `dir` is for the caches, and for the newest checkpoint that they are good for. All of it can be
    /// deleted.
    pub fn start(store: &Store, dir: &Path, key: VerifierKey) -> Result<Self, LogError> {
        let offered = Arc::default();
        let keeper = CopiedCheckpoints { offered: Arc::clone(&offered), files: CheckpointFiles::new(dir) };
        let options = LogOptions::of_another(dir, key, Box::new(keeper));
        Ok(Self { log: Arc::new(TransparencyLog::start(store, options)?), offered })
    }

    /// The newest checkpoint that the other server shows. The log's key must have signed it. It counts within a second,
    /// and when the commits are there that it covers.
    pub fn offer(&self, note: Vec<u8>) {
        *lock(&self.offered) = Some(note);
    }
}

#[derive(Debug)]
struct CopiedCheckpoints {
    offered: Arc<Mutex<Option<Vec<u8>>>>,
    files: CheckpointFiles,
}

impl CheckpointKeeper for CopiedCheckpoints {
    fn load(&mut self) -> Result<KeptNotes, KeepError> {
        // Without it everything is derived again, and the file is replaced.
        let cached = self.files.load().ok().and_then(|kept| kept.newest);
        Ok(KeptNotes { newest: lock(&self.offered).clone(), cosigned: None, cached })
    }

    fn location(&self) -> String {
        "the other server".to_owned()
    }

    // A server that shows an older one than before is not told.
    fn keep_newest(&mut self, _before: u64, _note: &str) -> Result<(), KeepError> {
        Ok(())
    }

    fn keep_cosigned(&mut self, _note: &str) -> Result<(), KeepError> {
        Ok(())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_copy(&self) -> bool {
        true
    }

    fn note_cached(&mut self, note: &str) -> Result<(), KeepError> {
        self.files.keep_newest(0, note)
    }
}
