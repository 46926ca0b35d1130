//! The checkpoints that matter: the newest one that its witnesses have cosigned as the policy demands, and those after
//! it, which wait for them. Each comes with what proofs need.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use countersign_core::log::checkpoint::{
    Checkpoint, CheckpointError, Cosignature, InclusionProof, SignedCheckpoint,
};
use countersign_core::log::note::{Note, NoteError, NoteSignature};
use countersign_core::log::{policy::Policy, record::Leaf, status::Statuses, tree::Hash, tree::TreeHead};
use countersign_core::values::verifier_key::VerifierKey;
use countersign_store::machine::clock::since_1970;
use thiserror::Error;

use crate::keeper::{CheckpointKeeper, KeepError};
use crate::{error::LogError, recent::RecentLog, records::KeptMaps, settings::MAX_WAITING};

/// A round of cosignatures, announced whenever witnesses should be asked: for a new checkpoint, and for the same one
/// again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckpointRound {
    /// The size of the newest checkpoint; 0 before the first one.
    pub size: u64,
    /// Differs each time.
    pub round: u64,
}

#[derive(Debug, Clone, Error)]
pub enum CosignError {
    #[error(
        "no checkpoint of {0} commits waits for witnesses: it is older than the newest cosigned one, or was never made"
    )]
    NotWaiting(u64),
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error("no signature is by a witness that this log knows")]
    UnknownWitness,
    #[error("the clock of the witness {0} is ahead: clients would refuse a proof with this cosignature")]
    Ahead(String),
    #[error(transparent)]
    Keep(#[from] KeepError),
    #[error(transparent)]
    Memory(#[from] LogError),
}

/// What proofs for one checkpoint are made of.
#[derive(Debug)]
pub(crate) struct CheckpointView {
    /// The last one that the checkpoint covers.
    pub(crate) leaf: Leaf,
    pub(crate) inclusion: Vec<Hash>,
    pub(crate) statuses: Statuses,
}

/// A checkpoint that was stored.
#[derive(Debug, Clone)]
pub(crate) struct Issued {
    pub(crate) signed: SignedCheckpoint,
    /// The checkpoint of a copy, with the cosignatures as they were shown.
    shown: Option<Note>,
    /// What proofs are made of; `None` until the log has been derived so far.
    pub(crate) view: Option<Arc<CheckpointView>>,
}

#[derive(Debug)]
pub(crate) struct Checkpoints {
    /// The key of the log.
    key: VerifierKey,
    keeper: Box<dyn CheckpointKeeper>,
    policy: Option<Policy>,
    witnesses: Vec<VerifierKey>,
    cosigned: Option<Issued>,
    /// Checkpoints newer than that, oldest first.
    waiting: VecDeque<Issued>,
    /// The checkpoint up to which the caches go, if that is not the newest one.
    cached: Option<Checkpoint>,
    /// Commits in the one that the keeper has.
    kept_size: u64,
    /// Checkpoints that the operator has given up. They count as if they had not been kept.
    lost: Vec<TreeHead>,
    /// What another server showed last, if this is a copy of its log. It may be a lie.
    offered: Option<TreeHead>,
    pub(crate) recent: RecentLog,
}

impl Checkpoints {
    pub(crate) fn new(key: VerifierKey, keeper: Box<dyn CheckpointKeeper>, policy: Option<Policy>) -> Self {
        let witnesses = policy.as_ref().map(Policy::witness_keys).unwrap_or_default();
        Self {
            key,
            keeper,
            policy,
            witnesses,
            cosigned: None,
            waiting: VecDeque::new(),
            cached: None,
            kept_size: 0,
            lost: Vec::new(),
            offered: None,
            recent: RecentLog::default(),
        }
    }

    /// Reads what was kept. Each must be signed by the log's key.
    pub(crate) fn load(&mut self, lost: Vec<TreeHead>) -> Result<(), KeepError> {
        self.lost = lost;
        let kept = self.keeper.load()?;
        let newest = kept.newest.map(|bytes| self.open(&bytes)).transpose()?;
        self.kept_size = newest.as_ref().map_or(0, Issued::size);
        let cached = kept.cached.and_then(|bytes| self.open(&bytes).ok());
        let (newest, cached) = (self.unless_lost(newest), self.unless_lost(cached));
        // A database that is new or has lost something does not make this machine forget.
        let newest = match self.keeper.is_copy() {
            // The one that was checked before; what is offered comes later.
            true => cached.clone().or(newest),
            false => newest.into_iter().chain(cached.clone()).max_by_key(Issued::size),
        };
        // Without the cosigned one staples wait for witnesses, and nothing else happens.
        let cosigned = kept.cosigned.and_then(|bytes| self.open(&bytes).ok());
        let cosigned = self.unless_lost(cosigned).filter(|cosigned| self.meets_quorum(&cosigned.signed));
        self.cached = cached.map(|cached| cached.checkpoint().clone());
        self.waiting = newest.into_iter().collect();
        let newest_size = self.waiting.back().map_or(0, Issued::size);
        self.cosigned = cosigned.filter(|cosigned| newest_size >= cosigned.size());
        // A crash between the two leaves the newest one without the last cosignatures.
        if let (Some(cosigned), Some(newest)) = (&self.cosigned, self.waiting.back())
            && cosigned.checkpoint() == newest.checkpoint()
        {
            self.waiting.clear();
        }
        self.promote();
        // What was known before is no news.
        self.recent = RecentLog::default();
        Ok(())
    }

    fn unless_lost(&self, issued: Option<Issued>) -> Option<Issued> {
        issued.filter(|issued| !self.lost.contains(&issued.checkpoint().head()))
    }

    /// Finds checkpoints of at most `size` commits that the log does not continue.
    pub(crate) fn find_lost(&self, size: u64, is_continued: impl Fn(&TreeHead) -> bool) -> Vec<&Issued> {
        let issued = self.cosigned.iter().chain(&self.waiting);
        let is_lost = |issued: &&Issued| issued.size() <= size && !is_continued(&issued.checkpoint().head());
        issued.filter(is_lost).collect()
    }

    /// The operator has given up these. That is on disk already.
    pub(crate) fn lose(&mut self, heads: &[TreeHead]) {
        let is_lost = |checkpoint: &Checkpoint| heads.contains(&checkpoint.head());
        self.cosigned.take_if(|issued| is_lost(issued.checkpoint()));
        self.waiting.retain(|issued| !is_lost(issued.checkpoint()));
        self.cached.take_if(|cached| is_lost(cached));
        self.lost.extend(heads);
    }

    /// Commits in the newest one, of this node or another.
    pub(crate) fn look_up_size(&mut self) -> Result<u64, KeepError> {
        let kept = if self.is_shared() { self.keeper.load()?.newest } else { None };
        let kept = kept.map(|bytes| self.open(&bytes)).transpose()?;
        Ok(self.unless_lost(kept).map_or(0, |kept| kept.size()).max(self.newest_size()))
    }

    /// What was kept must be signed by the log's key. A witness that was replaced since then does not count any more,
    /// and does not matter either.
    fn open(&self, bytes: &[u8]) -> Result<Issued, KeepError> {
        let opened = Note::parse(bytes).map_err(CheckpointError::from).and_then(|note| {
            let signed = SignedCheckpoint::open(&note, std::slice::from_ref(&self.key), &self.witnesses)?;
            Ok(Issued { signed, shown: self.keeper.is_copy().then_some(note), view: None })
        });
        opened.map_err(|error| KeepError::Unusable {
            location: self.keeper.location(),
            key: self.key.to_string(),
            reason: error.to_string(),
        })
    }

    /// Looks for what other nodes have signed. Whether there is anything new.
    pub(crate) fn refresh(&mut self) -> Result<bool, KeepError> {
        let Some(bytes) = self.keeper.load()?.newest else {
            self.kept_size = 0;
            return self.give_back(0);
        };
        let found = self.open(&bytes)?;
        if self.keeper.is_copy() {
            return self.take_offered(found);
        }
        let size = found.size();
        self.kept_size = size;
        let Some(found) = self.unless_lost(Some(found)) else { return self.give_back(size) };
        if size > self.newest_size() {
            self.push(found);
            return Ok(true);
        }
        if size < self.newest_size() {
            return self.give_back(size);
        }
        let witnesses = self.witnesses.clone();
        let Some(issued) = self.of_size(size) else { return Ok(false) };
        let before = issued.note();
        // Verified a moment ago.
        let _ = issued.signed.add_cosignatures(found.signed.note().signatures(), &witnesses);
        let is_new = issued.note() != before;
        if is_new {
            self.recent.note_cosigned(now());
        }
        self.promote();
        Ok(is_new)
    }

    /// Takes what the other server shows of its log, to be seen once its root was counted here. Whether it is new.
    fn take_offered(&mut self, found: Issued) -> Result<bool, KeepError> {
        let (size, head) = (found.size(), found.checkpoint().head());
        self.offered = Some(head);
        let checked_size = self.cosigned.as_ref().map_or(0, Issued::size);
        let Some(known) = self.of_size(size) else {
            // An origin that is behind says nothing new.
            if size > checked_size {
                let at = self.waiting.partition_point(|issued| issued.size() < size);
                self.waiting.insert(at, found);
                // Those that come first are counted first.
                self.waiting.truncate(MAX_WAITING);
            }
            return Ok(size > checked_size);
        };
        // Of two roots, [`Checkpoints::refute`] finds out which one is the lie.
        if known.checkpoint().head() != head || known.note() == found.note() {
            return Ok(false);
        }
        known.shown = found.shown;
        if known.view.is_some() {
            // So that a restart does not go back to an older time.
            self.note_cached(size)?;
            self.recent.note_cosigned(now());
        }
        Ok(true)
    }

    /// Drops what waits and is a lie, as far as that is known. The size of what the other server shows now, if that is
    /// one.
    pub(crate) fn refute(&mut self, is_lie: impl Fn(&TreeHead) -> bool) -> Option<u64> {
        // Only a copy was offered something. What a log has signed itself, it must not forget.
        let offered = self.offered?;
        self.waiting.retain(|issued| !is_lie(&issued.checkpoint().head()));
        Some(offered).filter(is_lie).map(|offered| offered.size)
    }

    /// The database has lost the newest one, as after a failover to a standby that lagged behind, or never had it.
    fn give_back(&mut self, size: u64) -> Result<bool, KeepError> {
        let Some(newest) = self.newest().map(|newest| newest.note().to_string()) else {
            return Ok(false);
        };
        match self.keeper.keep_newest(size, &newest) {
            Ok(()) => {
                self.kept_size = self.newest_size();
                Ok(false)
            }
            Err(KeepError::Overtaken) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.keeper.is_shared()
    }

    /// The caches go up to the checkpoint of this size.
    pub(crate) fn note_cached(&mut self, size: u64) -> Result<(), KeepError> {
        let Some(note) = self.of_size(size).map(|issued| issued.note().to_string()) else {
            return Ok(());
        };
        self.keeper.note_cached(&note)
    }

    pub(crate) fn cached(&self) -> Option<&Checkpoint> {
        self.cached.as_ref()
    }

    /// The sizes of checkpoints that do not have what proofs need.
    pub(crate) fn sizes_without_view(&self) -> Vec<u64> {
        let issued = self.cosigned.iter().chain(&self.waiting).filter(|issued| issued.view.is_none());
        issued.map(Issued::size).collect()
    }

    /// The maps of all that a start can ask for, the newest last; `None` while one of them was not derived.
    pub(crate) fn maps(&self) -> Option<KeptMaps> {
        let issued = self.cosigned.iter().chain(&self.waiting);
        let maps = issued.map(|issued| Some((issued.size(), issued.view.as_ref()?.statuses.clone())));
        maps.collect::<Option<KeptMaps>>().filter(|maps| !maps.is_empty())
    }

    /// Witnesses that have cosigned one of them.
    pub(crate) fn cosigners(&self) -> Vec<VerifierKey> {
        let issued = self.cosigned.iter().chain(&self.waiting);
        issued.flat_map(|issued| issued.signed.cosignatures().map(|by| by.witness.clone())).collect()
    }

    /// The newest checkpoint is given to witnesses again.
    pub(crate) fn note_round(&mut self) {
        match self.policy.as_ref().and_then(Policy::quorum_text) {
            Some(_) => self.recent.note_round(now()),
            // The log's word is enough.
            None => self.recent.note_cosigned(now()),
        }
    }

    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// The newest one. Of a copy, the newest one whose root was counted here.
    pub(crate) fn newest(&self) -> Option<&Issued> {
        self.waiting.back().filter(|_| !self.keeper.is_copy()).or(self.cosigned.as_ref())
    }

    /// The newest one that is kept, to read the caches by.
    pub(crate) fn newest_kept(&self) -> Option<&Issued> {
        self.waiting.back().or(self.cosigned.as_ref())
    }

    /// Whether a checkpoint of this size waits for what proofs need.
    pub(crate) fn awaits_view(&self, size: u64) -> bool {
        let mut issued = self.cosigned.iter().chain(&self.waiting);
        issued.any(|issued| issued.size() == size && issued.view.is_none())
    }

    pub(crate) fn newest_size(&self) -> u64 {
        self.newest().map_or(0, Issued::size)
    }

    /// The newest one that meets the quorum.
    pub(crate) fn cosigned(&self) -> Option<&Issued> {
        self.cosigned.as_ref()
    }

    /// The one with this size, if it is kept.
    pub(crate) fn of_size(&mut self, size: u64) -> Option<&mut Issued> {
        self.cosigned.iter_mut().chain(&mut self.waiting).find(|issued| issued.size() == size)
    }

    /// Keeps a new checkpoint, durably, before anyone sees it.
    pub(crate) fn issue(&mut self, signed: SignedCheckpoint, view: CheckpointView) -> Result<(), KeepError> {
        self.keeper.keep_newest(self.kept_size, &signed.note().to_string())?;
        self.kept_size = signed.checkpoint().size;
        self.push(Issued { signed, shown: None, view: Some(Arc::new(view)) });
        Ok(())
    }

    fn push(&mut self, issued: Issued) {
        self.recent.note_made(issued.size(), now());
        self.waiting.push_back(issued);
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
        }
        self.promote();
    }

    /// Adds what witnesses say about the checkpoint of this size. Gives those cosignatures that are of known witnesses.
    pub(crate) fn add_cosignatures(
        &mut self,
        size: u64,
        lines: &[NoteSignature],
    ) -> Result<Vec<Cosignature>, CosignError> {
        if self.is_shared() {
            // Other nodes may have heard of other witnesses.
            self.refresh()?;
        }
        let witnesses = self.witnesses.clone();
        let newest_size = self.newest_size();
        let issued = self.of_size(size).ok_or(CosignError::NotWaiting(size))?;
        let before = issued.signed.clone();
        let mut signed = before.clone();
        let added = signed.add_cosignatures(lines, &witnesses)?;
        if added.is_empty() {
            return Err(CosignError::UnknownWitness);
        }
        // Anyone can send again what a witness has said.
        if signed.note() == before.note() {
            return Ok(added);
        }
        if self.as_of(&signed) > self.as_of(&before) {
            self.recent.note_cosigned(now());
        }
        // First on disk: a restart must not go back to an older time.
        let note = signed.note().to_string();
        if self.meets_quorum(&signed) {
            self.keeper.keep_cosigned(&note)?;
        }
        if size == newest_size {
            match self.keeper.keep_newest(newest_size, &note) {
                // It is not the newest one any more.
                Err(KeepError::Overtaken) => {}
                kept => kept?,
            }
        }
        if let Some(issued) = self.of_size(size) {
            issued.signed = signed;
        }
        self.promote();
        Ok(added)
    }

    /// The newest one that meets the quorum takes the place of the last such one; those before it wait no longer. In a
    /// copy, a checkpoint waits until its root was computed here.
    pub(crate) fn promote(&mut self) {
        let is_copy = self.keeper.is_copy();
        let is_met =
            |issued: &Issued| self.meets_quorum(&issued.signed) && (!is_copy || issued.view.is_some());
        let met = self.waiting.iter().rposition(is_met);
        if let Some(met) = met {
            self.cosigned = self.waiting.drain(..=met).next_back();
            if let Some(cosigned) = self.cosigned.as_ref().filter(|_| is_copy) {
                self.recent.note_made(cosigned.size(), now());
            }
            self.recent.note_cosigned(now());
        }
    }

    /// Since when enough witnesses vouch for it.
    fn as_of(&self, signed: &SignedCheckpoint) -> Option<u64> {
        let cosignatures = signed.cosignatures().map(|by| (by.witness.clone(), by.time));
        self.policy.as_ref()?.as_of(cosignatures)
    }

    fn meets_quorum(&self, signed: &SignedCheckpoint) -> bool {
        let keys = signed.cosignatures().map(|cosignature| cosignature.witness.clone()).collect();
        self.policy.as_ref().is_none_or(|policy| policy.is_met(&keys))
    }
}

impl Issued {
    pub(crate) fn size(&self) -> u64 {
        self.signed.checkpoint().size
    }

    pub(crate) fn checkpoint(&self) -> &Checkpoint {
        self.signed.checkpoint()
    }

    /// The checkpoint as a note, with the cosignatures that it has.
    pub(crate) fn note(&self) -> Note {
        self.shown.clone().unwrap_or_else(|| self.signed.note())
    }

    /// The proof that its tree ends with the leaf of the view.
    pub(crate) fn proof(&self) -> Option<InclusionProof> {
        let hashes = self.view.as_ref()?.inclusion.clone();
        Some(InclusionProof { index: self.size().checked_sub(1)?, hashes, note: self.note() })
    }
}

fn now() -> Duration {
    since_1970().unwrap_or_default()
}
