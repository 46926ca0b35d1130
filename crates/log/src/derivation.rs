//! The log's thread: follows the store, derives leaves, and signs checkpoints.

use std::sync::{Arc, atomic::Ordering};
use std::{cell::RefCell, collections::VecDeque, thread, time::Duration, time::Instant};

use countersign_core::log::tree::{Tree, TreeHead};
use countersign_core::log::{checkpoint::Checkpoint, record::digest_changes, status::Statuses};
use countersign_core::{rules::snapshot::Change, rules::snapshot::Snapshot as _, values::digest::Sha256};
use countersign_store::writer::{commit_feed::CommitFeed, feed::FeedNews};
use countersign_store::{Head, ObjectId, StoreError, machine::clock::lock};

use crate::cache::{CacheWish, CachedLeaf, LoadedLog, LogCache, Recount};
use crate::error::{LogError, LogRefusal};
use crate::state::LogState;
use crate::{checkpoints::CheckpointView, keeper::KeepError, seen::LogStanding, settings::CheckpointSigner};

/// How long to wait before trying again what has failed.
const RETRY: Duration = Duration::from_secs(1);
/// How often to look for what other nodes have signed.
const LOOK: Duration = Duration::from_secs(1);
/// How many versions to keep for what other nodes have signed: some seconds of load.
const RECENT: usize = 4_096;
/// Leaves that are read back from disk at a time, to count them again.
const RECOUNT_LEAVES: u64 = 4_096;

#[derive(Debug)]
pub(crate) struct LogBuilder {
    shared: Arc<LogState>,
    feed: CommitFeed,
    cache: LogCache,
    signer: Arc<CheckpointSigner>,
    pace: LogPace,
    /// The statuses after the newest commit.
    statuses: Statuses,
    last: Option<CachedLeaf>,
    recount: Recount,
    /// Whether the tree was found to continue the newest checkpoint.
    continues: bool,
    /// The last versions, if other nodes sign as well, since a checkpoint of theirs can be of any size.
    recent: Option<VecDeque<LogVersion>>,
    last_look: Option<Instant>,
    is_loaded: bool,
}

/// The log when it had so many leaves: what proofs of a checkpoint of this size need.
#[derive(Debug, Clone)]
struct LogVersion {
    size: u64,
    /// The last leaf.
    leaf: CachedLeaf,
    statuses: Statuses,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LogPace {
    pub(crate) checkpoint_every: Duration,
    pub(crate) heartbeat_every: Duration,
}

impl LogBuilder {
    pub(crate) fn new(
        shared: Arc<LogState>,
        feed: CommitFeed,
        cache: LogCache,
        signer: Arc<CheckpointSigner>,
        pace: LogPace,
    ) -> Self {
        let recent = shared.checkpoints().is_shared().then(VecDeque::new);
        Self {
            recent,
            last_look: None,
            shared,
            feed,
            cache,
            signer,
            pace,
            statuses: Statuses::default(),
            last: None,
            recount: Recount::default(),
            continues: false,
            is_loaded: false,
        }
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self) {
        while !self.shared.is_stopping() {
            match self.work() {
                Ok(()) => self.shared.note_recovery(),
                Err(error) => {
                    let is_damaged = matches!(error, LogError::Miscounted(_));
                    self.shared.report(error);
                    if is_damaged && let Err(error) = self.reset() {
                        self.shared.report(error);
                    }
                    // Stopping unparks.
                    thread::park_timeout(RETRY);
                }
            }
        }
    }

    fn work(&mut self) -> Result<(), LogError> {
        if !self.is_loaded {
            self.load()?;
            self.is_loaded = true;
            self.catch_up()?;
        } else {
            match self.feed.next(self.rest()) {
                FeedNews::Commits(commits) => {
                    let head = self.feed.head();
                    for commit in &commits {
                        // After a failure the feed is ahead.
                        if commit.parent != self.newest() {
                            self.catch_up()?;
                            break;
                        }
                        self.push(commit.id, &commit.object, &commit.change, &head)?;
                    }
                }
                FeedNews::Behind => self.catch_up()?,
            }
        }
        let size = self.shared.tree().len();
        self.shared.sizes.send_if_modified(|known| std::mem::replace(known, size) != size);
        if self.shared.is_stopping() {
            return Ok(());
        }
        self.look_for_others()?;
        if self.check_continuation()? && self.is_due() {
            self.make_checkpoint()?;
        }
        let shared = Arc::clone(&self.shared);
        self.cache.compact(|| shared.checkpoints().maps())
    }

    fn newest(&self) -> Option<ObjectId> {
        self.last.map(|leaf| leaf.commit)
    }

    /// What the caches hold, if it is the log of the newest checkpoint, or of the last one that this machine has seen.
    fn load(&mut self) -> Result<(), LogError> {
        let lost = lock(&self.shared.seen).lost_heads()?;
        let mut checkpoints = self.shared.checkpoints();
        checkpoints.load(lost)?;
        let cosigners = checkpoints.cosigners();
        self.shared.show(&checkpoints);
        let earlier = checkpoints.cosigned().map(|cosigned| cosigned.size());
        let newest = checkpoints.newest_kept().map(|newest| newest.checkpoint().head());
        let cached = checkpoints.cached().map(Checkpoint::head).filter(|cached| Some(*cached) != newest);
        drop(checkpoints);
        // For data directories from before this was remembered.
        lock(&self.shared.seen).note_cosigned(&cosigners)?;
        self.shared.loaded.send_replace(true);
        let shared = Arc::clone(&self.shared);
        let log = shared.key.name();
        for head in newest.into_iter().chain(cached) {
            if self.load_up_to(head, earlier.filter(|size| *size < head.size))? {
                tracing::info!(log, size = head.size, "the log goes on from what was derived before");
                return Ok(());
            }
        }
        if shared.is_stopping() {
            // What was not read to its end is still good.
            return Ok(());
        }
        if !self.cache.is_empty_on_disk()? {
            let reason = "it is damaged or incomplete, or of another repository, or no checkpoint covers it";
            tracing::warn!(
                log,
                reason,
                "what was derived of the log before cannot be used: it is derived again"
            );
        }
        self.reset()
    }

    fn load_up_to(&mut self, head: TreeHead, earlier: Option<u64>) -> Result<bool, LogError> {
        let shared = Arc::clone(&self.shared);
        let wish = CacheWish { head, earlier, is_stopping: &|| shared.is_stopping() };
        let Some(loaded) = self.cache.load(&wish)? else { return Ok(false) };
        let last = self.cache.leaves().read(head.size - 1..head.size)?.pop();
        let Some(last) = last else { return Ok(false) };
        if self.feed.journal(Some(last.commit))?.is_none() {
            return Ok(false);
        }
        self.take(loaded, &wish, last).map(|()| true)
    }

    fn take(&mut self, loaded: LoadedLog, wish: &CacheWish<'_>, last: CachedLeaf) -> Result<(), LogError> {
        let LoadedLog { tree, recount, earlier, statuses } = loaded;
        let newest = LogVersion { size: wish.head.size, leaf: last, statuses: statuses.clone() };
        let mut versions = vec![newest];
        if let (Some(size), Some(statuses)) = (wish.earlier, earlier)
            && let Some(leaf) = self.cache.leaves().read(size - 1..size)?.pop()
        {
            versions.push(LogVersion { size, leaf, statuses });
        }
        *self.shared.tree_mut() = tree;
        for version in versions {
            self.show_view(version)?;
        }
        (self.statuses, self.last, self.recount) = (statuses, Some(last), recount);
        Ok(())
    }

    /// Forgets what was derived; the repository gives it again.
    fn reset(&mut self) -> Result<(), LogError> {
        *self.shared.tree_mut() = Tree::default();
        (self.statuses, self.last, self.recount) = (Statuses::default(), None, Recount::default());
        self.continues = false;
        self.cache.clear()
    }

    /// Reads what the feed does not have.
    fn catch_up(&mut self) -> Result<(), LogError> {
        loop {
            let Some(mut export) = self.feed.journal(self.newest())? else {
                tracing::warn!("the repository is not the one that the log was made from: it is made again");
                self.reset()?;
                continue;
            };
            let head = self.feed.head();
            while let Some(entry) = export.next_entry()? {
                if self.shared.is_stopping() {
                    return Ok(());
                }
                let object = self.feed.commit_object(&entry.id)?;
                self.push(entry.id, &object, &entry.change, &head)?;
            }
            if self.feed.resume(self.newest()) {
                return Ok(());
            }
        }
    }

    /// Adds the leaf of one more commit. `head` is its state, or any later one.
    fn push(&mut self, id: ObjectId, object: &[u8], change: &Change, head: &Head) -> Result<(), LogError> {
        let unreadable = RefCell::new(None);
        let read_index = |path: &_| {
            head.read(path).unwrap_or_else(|error| {
                unreadable.replace(Some(error));
                None
            })
        };
        let applied = self.statuses.apply(change, read_index);
        if let Some(error) = unreadable.into_inner() {
            // Of the disk, and not of the commit: it is tried again.
            let (subject, reason) = (error.path.to_string(), error.reason);
            return Err(StoreError::Corrupt { subject, reason }.into());
        }
        let (statuses, records) = applied.map_err(|source| LogError::Underivable { commit: id, source })?;
        let (object, changes, state) = (Sha256::of(object), digest_changes(change), statuses.root());
        let leaf = CachedLeaf { commit: id, object, changes, state };
        self.cache.push(&leaf, records)?;
        let size = {
            let mut tree = self.shared.tree_mut();
            tree.push(leaf.leaf().hash());
            tree.len()
        };
        (self.statuses, self.last) = (statuses, Some(leaf));
        if let Some(recent) = &mut self.recent {
            recent.push_back(LogVersion { size, leaf, statuses: self.statuses.clone() });
            if recent.len() > RECENT {
                recent.pop_front();
            }
        }
        let awaits_view = self.shared.checkpoints().awaits_view(size);
        if awaits_view {
            self.show_view(LogVersion { size, leaf, statuses: self.statuses.clone() })?;
        }
        Ok(())
    }

    /// Hands a version to the checkpoint of its size that waits for what proofs need, if there is one.
    fn show_view(&mut self, version: LogVersion) -> Result<(), LogError> {
        let LogVersion { size, leaf, statuses } = version;
        let mut checkpoints = self.shared.checkpoints();
        let Some(issued) = checkpoints.of_size(size).filter(|issued| issued.view.is_none()) else {
            return Ok(());
        };
        let inclusion = {
            let tree = self.shared.tree();
            let is_same = tree.root(size) == Some(issued.checkpoint().root);
            tree.inclusion(size - 1, size).filter(|_| is_same)
        };
        if let Some(inclusion) = inclusion {
            // From here on others read the leaves; and the next start finds the caches up to here.
            self.cache.sync()?;
            issued.view = Some(Arc::new(CheckpointView { leaf: leaf.leaf(), inclusion, statuses }));
            checkpoints.note_cached(size)?;
            checkpoints.promote();
            self.shared.show(&checkpoints);
        }
        Ok(())
    }

    /// A log that does not continue what it has signed, or what witnesses have seen, must not sign (D88).
    /// False for a node that does not have all commits yet that another one has signed.
    fn check_continuation(&mut self) -> Result<bool, LogError> {
        let size = self.shared.tree().len();
        if let Some(refusal) = self.compare_with_seen()? {
            return Err(refusal.into());
        }
        if let Some(size) = self.find_contradiction() {
            return Err(LogError::Contradicted { size });
        }
        let signed = self.shared.checkpoints().newest().map(|newest| newest.checkpoint().head());
        if let Some(signed) = signed.filter(|_| !self.continues) {
            let TreeHead { size: signed, root } = signed;
            if size < signed && self.recent.is_some() {
                return Ok(false);
            }
            if size < signed {
                return Err(LogRefusal::Behind { signed, size }.into());
            }
            if self.shared.tree().root(signed) != Some(root) {
                return Err(LogRefusal::Forked { signed }.into());
            }
        }
        self.continues = true;
        self.shared.is_compared.store(true, Ordering::Release);
        Ok(true)
    }

    /// Compares what the other server shows, if this is a copy of its log, with the commits that it has sent.
    fn find_contradiction(&self) -> Option<u64> {
        let mut checkpoints = self.shared.checkpoints();
        let tree = self.shared.tree();
        checkpoints.refute(|head| head.size <= tree.len() && tree.root(head.size) != Some(head.root))
    }

    /// What witnesses have seen, and the log does not continue (D190, D208).
    fn compare_with_seen(&self) -> Result<Option<LogRefusal>, LogError> {
        let (signed, policy) = {
            let checkpoints = self.shared.checkpoints();
            (checkpoints.newest_size(), checkpoints.policy().cloned())
        };
        let answered = lock(&self.shared.answered).clone();
        let (mut seen, tree) = (lock(&self.shared.seen), self.shared.tree());
        seen.find_refusal(LogStanding { tree: &tree, signed, policy: policy.as_ref(), answered: &answered })
    }

    /// Takes over what other nodes have signed, every second.
    fn look_for_others(&mut self) -> Result<(), LogError> {
        let is_due = self.last_look.is_none_or(|last| last.elapsed() >= LOOK);
        if self.recent.is_none() || !is_due { Ok(()) } else { self.take_over().map(drop) }
    }

    /// Takes over what other nodes have signed, and returns whether there was something new.
    fn take_over(&mut self) -> Result<bool, LogError> {
        self.last_look = Some(Instant::now());
        let mut checkpoints = self.shared.checkpoints();
        if !checkpoints.refresh()? {
            return Ok(false);
        }
        self.shared.show(&checkpoints);
        let wanted = checkpoints.sizes_without_view();
        drop(checkpoints);
        self.continues = false;
        // The other node asks the witnesses.
        *lock(&self.shared.last_round) = Some(Instant::now());
        let recent = self.recent.iter().flatten();
        let found: Vec<_> = recent.filter(|version| wanted.contains(&version.size)).cloned().collect();
        for version in found {
            self.show_view(version)?;
        }
        Ok(true)
    }

    fn has_news(&self) -> bool {
        self.shared.tree().len() > self.shared.checkpoints().newest_size()
    }

    /// How long there is nothing to do if no commit comes.
    fn time_to_next(&self) -> Duration {
        let every = if !self.can_sign() {
            return self.pace.heartbeat_every;
        } else if self.has_news() {
            self.pace.checkpoint_every
        } else {
            self.pace.heartbeat_every
        };
        let last = *lock(&self.shared.last_round);
        last.map_or(Duration::ZERO, |last| every.saturating_sub(last.elapsed()))
    }

    /// How long to wait for commits.
    fn rest(&self) -> Duration {
        if self.recent.is_some() { self.time_to_next().min(LOOK) } else { self.time_to_next() }
    }

    fn is_due(&self) -> bool {
        self.can_sign() && self.time_to_next().is_zero()
    }

    fn can_sign(&self) -> bool {
        self.shared.is_allowed_to_sign.load(Ordering::Acquire) && !self.shared.tree().is_empty()
    }

    /// Signs what is new, or begins another round with the same.
    fn make_checkpoint(&mut self) -> Result<(), LogError> {
        if self.has_news() {
            let TreeHead { size, root } = self.count_twice()?;
            let leaf = self.check_last()?;
            let origin = self.shared.key.name().to_owned();
            let signed = self.signer.sign(&Checkpoint { origin, size, root })?;
            let inclusion = self.shared.tree().inclusion(size - 1, size);
            let inclusion = inclusion.ok_or(LogError::Miscounted("size"))?;
            let view = CheckpointView { leaf: leaf.leaf(), inclusion, statuses: self.statuses.clone() };
            let mut checkpoints = self.shared.checkpoints();
            match checkpoints.issue(signed, view) {
                Ok(()) => {
                    self.shared.show(&checkpoints);
                    checkpoints.note_cached(size)?;
                    drop(checkpoints);
                    lock(&self.shared.seen).note_signed(size)?;
                }
                Err(KeepError::Overtaken) if self.recent.is_some() => {
                    drop(checkpoints);
                    let is_new = self.take_over()?;
                    return if is_new { Ok(()) } else { Err(KeepError::Overtaken.into()) };
                }
                Err(error) => return Err(error.into()),
            }
        }
        let mut checkpoints = self.shared.checkpoints();
        checkpoints.note_round();
        let size = checkpoints.newest_size();
        drop(checkpoints);
        self.shared.begin_round(size);
        Ok(())
    }

    /// The tree in memory, counted again from the leaves that are on disk.
    fn count_twice(&mut self) -> Result<TreeHead, LogError> {
        self.cache.sync()?;
        let size = self.cache.len();
        let mut recount = self.recount.clone();
        while recount.size() < size {
            let begin = recount.size();
            let leaves = self.cache.leaves().read(begin..size.min(begin + RECOUNT_LEAVES))?;
            leaves.iter().for_each(|leaf| recount.push(leaf.leaf().hash()));
        }
        let root = recount.root();
        if self.shared.tree().root(size) != Some(root) || self.shared.tree().len() != size {
            return Err(LogError::Miscounted("root"));
        }
        self.recount = recount;
        Ok(TreeHead { size, root })
    }

    /// The last leaf, if the repository on disk gives it too.
    fn check_last(&self) -> Result<CachedLeaf, LogError> {
        let last = self.last.ok_or(LogError::Miscounted("size"))?;
        let object = self.feed.commit_object(&last.commit)?;
        let entry = self.feed.read_entry(&last.commit)?;
        let is_same = Sha256::of(&object) == last.object
            && digest_changes(&entry.change) == last.changes
            && self.statuses.root() == last.state;
        if is_same { Ok(last) } else { Err(LogError::Miscounted("last leaf")) }
    }
}
