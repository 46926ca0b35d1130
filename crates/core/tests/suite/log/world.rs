//! A log in memory, made of changes as the server makes them, so that every part of a staple can be a lie.

use std::{collections::BTreeMap, sync::Arc};

use countersign_core::documents::{layout, transparency::WitnessGroup};
use countersign_core::log::checkpoint::{Checkpoint, InclusionProof, SignedCheckpoint};
use countersign_core::log::record::{Leaf, Record, digest_changes};
use countersign_core::log::{policy::Policy, status::StatusError, status::Statuses, tree::Tree};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{key::SecretKey, path::RepoPath};
use countersign_core::{proof::bundle::Staple, rules::snapshot::Change};
use countersign_testing::{evidence::Past, path};

/// The test vector of the design, which two other programs computed.
pub(crate) const DESIGN_NOTE: &str = "example.com/log\n1\niipcm3aIJ95alVLDigRMZpWcaPbS8htSYK9U0vh9uCc=\n\n\
    — example.com/log 1FXFIeo95mfFlSjutprtqzdb94Rd7e6645LnC2HWsQ0LoAFsPgRFgJmcZRk1fgp59iqhQFldqgE2Ze3UEGQY3lIDfww=\n\
    — example.com/witness CY73fwAAAABlU/EAYHYcA6wpnZ7fZBFWABe2IDOVesXYAq84XoFyeffDRxVoNucZyxMEVzWRgcFt6P1xPN8cRthFTo+yQyRtk8lBBg==\n";

/// The key of the seed that counts up from `first`.
pub(crate) fn seed(first: u8) -> SecretKey {
    SecretKey::from_seed(&std::array::from_fn(|n| first + u8::try_from(n).expect("below 32")))
}

pub(crate) fn log_key() -> VerifierKey {
    VerifierKey::new("example.com/log", KeyKind::Log, seed(0).public_key()).expect("a key")
}

pub(crate) fn witness_key() -> VerifierKey {
    VerifierKey::new("example.com/witness", KeyKind::Witness, seed(0x20).public_key()).expect("a key")
}

/// One of the witnesses of [`policy`], counted from 1.
pub(crate) fn witness(n: u8) -> (VerifierKey, SecretKey) {
    let secret = seed(0x40 + n);
    let key = VerifierKey::new(&format!("witness{n}.example"), KeyKind::Witness, secret.public_key());
    (key.expect("a key"), secret)
}

/// Two of three witnesses.
pub(crate) fn policy() -> Policy {
    let keys = (1..=3).map(|n| witness(n).0).collect();
    Policy::of_groups(log_key(), &[WitnessGroup::new(2, keys)]).expect("a policy")
}

/// All commits of a log, with the status map after each.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogWorld {
    pub(crate) tree: Tree,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) versions: Vec<Statuses>,
    pub(crate) indexes: BTreeMap<RepoPath, Arc<[u8]>>,
}

impl LogWorld {
    pub(crate) fn statuses(&self) -> Statuses {
        self.versions.last().cloned().unwrap_or_default()
    }

    pub(crate) fn commit(&mut self, change: &Change) -> Result<Vec<Record>, StatusError> {
        let (statuses, records) = self.statuses().apply(change, |index| self.indexes.get(index).cloned())?;
        self.push(change, statuses);
        Ok(records)
    }

    /// A commit after which the map is what the log says, rightly or not.
    pub(crate) fn push(&mut self, change: &Change, statuses: Statuses) {
        let object = Sha256::of(format!("commit {}", self.leaves.len()).as_bytes());
        self.push_leaf(Leaf {
            commit: object.to_string()[..40].to_owned(),
            object,
            changes: digest_changes(change),
            state: statuses.root(),
        });
        self.versions.push(statuses);
    }

    pub(crate) fn push_leaf(&mut self, leaf: Leaf) {
        self.tree.push(leaf.hash());
        self.leaves.push(leaf);
    }

    /// The newest signers of a project take effect.
    pub(crate) fn rotate(&mut self, past: &Past) -> Vec<Record> {
        let (number, entry) = (past.history.entries.len(), past.history.entries.last().expect("an entry"));
        let mut change = Change::new("rotate");
        change.write(layout::active_signers(&past.project), entry.signers_config.as_bytes());
        change.write(layout::history_entry(&past.project, number), entry.write());
        self.commit(&change).expect("a rotation")
    }

    pub(crate) fn complete(&mut self, index: &str, text: &str) -> Vec<Record> {
        self.indexes.insert(path(index), text.as_bytes().into());
        let mut change = Change::new("complete");
        change.write(layout::signatures_of(&path(index)), b"signatures".as_slice());
        change.delete(layout::pending_signatures_of(&path(index)));
        self.commit(&change).expect("a completion")
    }

    pub(crate) fn revoke(&mut self, index: &str, document: &str) -> Vec<Record> {
        let mut change = Change::new("revoke");
        change.write(layout::revocation_of(&path(index)), document.as_bytes());
        change.write(layout::revoked_signatures_of(&path(index)), b"signatures".as_slice());
        change.delete(layout::signatures_of(&path(index)));
        self.commit(&change).expect("a revocation")
    }

    /// A commit that changes no status.
    pub(crate) fn idle(&mut self) {
        let mut change = Change::new("idle");
        change.write(path("https/github.com/443/acme/app/other"), b"other".as_slice());
        assert_eq!(self.commit(&change), Ok(Vec::new()));
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let (size, root) = (self.tree.len(), self.tree.root(self.tree.len()).expect("a root"));
        Checkpoint { origin: log_key().name().to_owned(), size, root }
    }

    /// The newest checkpoint, cosigned by these witnesses at these times.
    pub(crate) fn cosigned(&self, witnesses: &[(u8, u64)]) -> SignedCheckpoint {
        let mut signed = self.checkpoint().sign(&log_key(), &seed(0));
        for (n, time) in witnesses {
            let (key, secret) = witness(*n);
            let line = signed.cosign(&key, &secret, *time).line;
            signed.add_cosignatures(&[line], &[key]).expect("a cosignature");
        }
        signed
    }

    /// The staple of a release for the newest checkpoint.
    pub(crate) fn staple(&self, index: &str, cosigned: &SignedCheckpoint) -> Staple {
        let size = self.tree.len();
        let digest = Sha512::of(&self.indexes[&path(index)]);
        Staple {
            leaf: self.leaves.last().expect("a leaf").clone(),
            proof: InclusionProof {
                index: size - 1,
                hashes: self.tree.inclusion(size - 1, size).expect("a leaf"),
                note: cosigned.note(),
            },
            statuses: self.statuses().prove_release(&path(index), digest).expect("a release"),
        }
    }
}
