//! The checkpoints that matter: the newest one that its witnesses have cosigned as the policy demands, and those after
//! it, which wait for them. Each comes with what proofs need.

use std::{collections::VecDeque, sync::Arc};

use countersign_core::{
    log::{
        checkpoint::{Checkpoint, Cosignature, SignedCheckpoint},
        leaf::Leaf,
        note::{Note, NoteError, NoteSignature},
        policy::Policy,
        proofs::InclusionProof,
        status::Statuses,
        tree::Hash,
    },
    values::verifier_key::VerifierKey,
};
use thiserror::Error;

use crate::{
    keeper::{CheckpointKeeper, KeepError},
    settings::MAX_WAITING,
};

/// Told whenever witnesses should be asked: for a new checkpoint, and for the same one again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckpointRound {
    /// Of the newest checkpoint; 0 before the first one.
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
    #[error("none of the signatures is of a witness that this log knows")]
    UnknownWitness,
    #[error(transparent)]
    Keep(#[from] KeepError),
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
    /// `None` until the log has been derived so far.
    pub(crate) view: Option<Arc<CheckpointView>>,
}

#[derive(Debug)]
pub(crate) struct Checkpoints {
    keeper: Box<dyn CheckpointKeeper>,
    policy: Option<Policy>,
    witnesses: Vec<VerifierKey>,
    cosigned: Option<Issued>,
    /// Newer than that, oldest first.
    waiting: VecDeque<Issued>,
}

impl Checkpoints {
    pub(crate) fn new(keeper: Box<dyn CheckpointKeeper>, policy: Option<Policy>) -> Self {
        let witnesses = policy.as_ref().map(Policy::witness_keys).unwrap_or_default();
        Self { keeper, policy, witnesses, cosigned: None, waiting: VecDeque::new() }
    }

    /// Reads what was kept. Each must be signed by the log's key.
    pub(crate) fn load(&mut self, key: &VerifierKey) -> Result<(), KeepError> {
        let kept = self.keeper.load()?;
        let open = |bytes: Vec<u8>| {
            let note = Note::parse(&bytes).map_err(|error| error.to_string())?;
            // A witness that was replaced since then does not count any more, and does not matter either.
            SignedCheckpoint::open(&note, std::slice::from_ref(key), &self.witnesses)
                .map_err(|error| error.to_string())
        };
        let unusable =
            |reason| KeepError::Unusable { place: self.keeper.place(), key: key.to_string(), reason };
        let newest = kept.newest.map(open).transpose().map_err(unusable)?;
        let issue = |signed: SignedCheckpoint| Issued { signed, view: None };
        // Without the cosigned one staples wait for witnesses, and nothing else happens.
        let cosigned = kept.cosigned.and_then(|bytes| open(bytes).ok());
        let cosigned = cosigned.filter(|cosigned| self.meets_quorum(cosigned));
        self.waiting = newest.map(issue).into_iter().collect();
        self.cosigned = cosigned.map(issue).filter(|cosigned| self.newest_size() >= cosigned.size());
        // A crash between the two leaves the newest one without the last cosignatures.
        if let (Some(cosigned), Some(newest)) = (&self.cosigned, self.waiting.back())
            && cosigned.checkpoint() == newest.checkpoint()
        {
            self.waiting.clear();
        }
        self.promote();
        Ok(())
    }

    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    pub(crate) fn newest(&self) -> Option<&Issued> {
        self.waiting.back().or(self.cosigned.as_ref())
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

    /// Keeps a new checkpoint, durably. Nobody has seen it before this returns.
    pub(crate) fn issue(&mut self, signed: SignedCheckpoint, view: CheckpointView) -> Result<(), KeepError> {
        self.keeper.keep_newest(self.newest_size(), &signed.note().to_string())?;
        self.waiting.push_back(Issued { signed, view: Some(Arc::new(view)) });
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
        }
        self.promote();
        Ok(())
    }

    /// Adds what witnesses say about the checkpoint of this size. Gives those cosignatures that are of known witnesses.
    pub(crate) fn add_cosignatures(
        &mut self,
        size: u64,
        lines: &[NoteSignature],
    ) -> Result<Vec<Cosignature>, CosignError> {
        let witnesses = self.witnesses.clone();
        let newest_size = self.newest_size();
        let issued = self.of_size(size).ok_or(CosignError::NotWaiting(size))?;
        let mut signed = issued.signed.clone();
        let added = signed.add_cosignatures(lines, &witnesses)?;
        if added.is_empty() {
            return Err(CosignError::UnknownWitness);
        }
        // First on disk: a restart must not go back to an older time.
        let note = signed.note().to_string();
        if self.meets_quorum(&signed) {
            self.keeper.keep_cosigned(&note)?;
        }
        if size == newest_size {
            self.keeper.keep_newest(newest_size, &note)?;
        }
        if let Some(issued) = self.of_size(size) {
            issued.signed = signed;
        }
        self.promote();
        Ok(added)
    }

    /// The newest one that meets the quorum takes the place of the last such one; those before it wait no longer.
    fn promote(&mut self) {
        let met = self.waiting.iter().rposition(|issued| self.meets_quorum(&issued.signed));
        if let Some(met) = met {
            self.cosigned = self.waiting.drain(..=met).next_back();
        }
    }

    fn meets_quorum(&self, signed: &SignedCheckpoint) -> bool {
        let keys = signed.cosignatures().map(|cosignature| cosignature.witness.key()).collect();
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

    /// The proof that its tree ends with the leaf of the view.
    pub(crate) fn proof(&self) -> Option<InclusionProof> {
        let hashes = self.view.as_ref()?.inclusion.clone();
        Some(InclusionProof { index: self.size().checked_sub(1)?, hashes, note: self.signed.note() })
    }
}
