//! The proof that a log lied about the state (D214): one of its leaves has another status map than its own commits give.
//! All that it needs is what the log's key has signed, so anyone can verify it, offline.
//!
//! The leaf before says what the map was, the leaf itself binds what the commit changed. From both follows the map after
//! the commit. Of the map before only those records are shown that the commit looks at, with their paths.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use thiserror::Error;

use crate::log::checkpoint::{Checkpoint, CheckpointError, InclusionProof, SignedCheckpoint};
use crate::log::record::{Leaf, Record, ReleaseRecord, digest_changes};
use crate::log::status::{StatusError, Statuses, completed_indexes};
use crate::log::tree::{Hash, parse_hash, verify_inclusion, write_hash};
use crate::log::trie::{EMPTY, TriePath};
use crate::proof::bundle::{Proven, parse_proven};
use crate::values::bounds::{PROOF_HASHES, STATE_LIE_BYTES};
use crate::values::json::{Field, FromField, ParseError};
use crate::values::key::{decode_padded_base64, encode_base64};
use crate::values::{digest::Sha512, json, path::RepoPath, verifier_key::VerifierKey};
use crate::{documents::signatures::SignatureSet, json_fields, json_texts, rules::snapshot::Change};

const VERSION: u64 = 1;

/// A claim that a log lied about the state. Nothing of it is believed before [`StateLie::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateLie {
    /// The key of the log.
    pub log: VerifierKey,
    /// The leaf with the wrong map.
    pub leaf: Leaf,
    /// The inclusion proof, with the checkpoint that the log has signed.
    pub proof: InclusionProof,
    /// The leaf before it, which the same checkpoint covers. The first leaf has none.
    pub before: Option<LeafBefore>,
    /// What the commit changed.
    pub change: Change,
    /// Records of the map before the commit.
    pub records: Vec<(Record, TriePath)>,
    /// Indexes that the commit completes and that came with earlier commits.
    pub indexes: BTreeMap<RepoPath, Arc<[u8]>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafBefore {
    pub leaf: Leaf,
    /// The hashes that prove its inclusion.
    pub hashes: Vec<Hash>,
}

/// A lie that was proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenLie {
    pub checkpoint: Checkpoint,
    /// The index of the leaf, counted from 0.
    pub index: u64,
    pub commit: String,
    /// The root of the map that the leaf has, and that of the map that the commit gives.
    pub signed: Hash,
    pub derived: Hash,
    /// The records that the commit gives, of which the log's map has others.
    pub records: Vec<Record>,
}

/// Why something is no proof of a lie. Nothing is said about the log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoLie {
    #[error("its checkpoint cannot be used: {0}")]
    Checkpoint(#[from] CheckpointError),
    #[error("a leaf is not in the log")]
    NotInTheLog,
    #[error("only the first leaf has none before it")]
    LeafBefore,
    #[error("the change is not the one of the leaf")]
    OtherChange,
    #[error("the records are not those of the map before")]
    OtherMap,
    #[error("it leaves out a record that the change looks at")]
    Incomplete,
    #[error("the index {0} is not the one that was signed")]
    OtherIndex(RepoPath),
    #[error(transparent)]
    Underivable(#[from] StatusError),
    #[error("the log has the state that its commit gives")]
    Right,
}

impl StateLie {
    pub fn verify(&self) -> Result<ProvenLie, NoLie> {
        let InclusionProof { index, hashes, note } = &self.proof;
        let signed = SignedCheckpoint::open(note, std::slice::from_ref(&self.log), &[])?;
        let Checkpoint { size, root, .. } = signed.checkpoint();
        let is_included = |leaf: &Leaf, index: u64, hashes: &[Hash]| {
            verify_inclusion(&leaf.hash(), index, *size, hashes, root).map_err(|_| NoLie::NotInTheLog)
        };
        is_included(&self.leaf, *index, hashes)?;
        let before = match (&self.before, index.checked_sub(1)) {
            (None, None) => Hash::from_bytes(EMPTY),
            (Some(LeafBefore { leaf, hashes }), Some(index)) => {
                is_included(leaf, index, hashes)?;
                leaf.state
            }
            (Some(_), None) | (None, Some(_)) => return Err(NoLie::LeafBefore),
        };
        if digest_changes(&self.change) != self.leaf.changes {
            return Err(NoLie::OtherChange);
        }
        let statuses = Statuses::of_paths(&before, &self.records).ok_or(NoLie::OtherMap)?;
        if !statuses.decides(&self.change) {
            return Err(NoLie::Incomplete);
        }
        let (derived, records) = self.derive(&statuses)?;
        if derived == self.leaf.state {
            return Err(NoLie::Right);
        }
        Ok(ProvenLie {
            checkpoint: signed.checkpoint().clone(),
            index: *index,
            commit: self.leaf.commit.clone(),
            signed: self.leaf.state,
            derived,
            records,
        })
    }

    fn derive(&self, statuses: &Statuses) -> Result<(Hash, Vec<Record>), NoLie> {
        let mut digests: BTreeMap<&RepoPath, Sha512> = BTreeMap::new();
        // The record of a release that was completed before binds its index.
        for (record, _) in &self.records {
            if let Record::Release(ReleaseRecord { path, index, .. }) = record {
                digests.insert(path, *index);
            }
        }
        // The signatures that the commit writes bind the index of one that it completes.
        for (path, bytes) in &self.indexes {
            let mut completed = completed_indexes(&self.change);
            let signatures = completed.find(|(index, _)| index == path);
            let signatures = signatures.and_then(|(_, file)| SignatureSet::parse(file).ok());
            let is_signed =
                signatures.is_some_and(|set| set.verify(bytes).is_ok_and(|keys| !keys.is_empty()));
            if !is_signed {
                return Err(NoLie::OtherIndex(path.clone()));
            }
            digests.insert(path, Sha512::of(bytes));
        }
        let (after, records) = statuses.apply_digests(&self.change, |index| digests.get(index).copied())?;
        Ok((after.root(), records))
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        json::check_len(bytes, STATE_LIE_BYTES, "evidence has")?;
        json::read(bytes)
    }

    pub fn write(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Document<'a> {
            version: u64,
            log: String,
            leaf: String,
            proof: String,
            before: Option<Before>,
            change: BTreeMap<&'a str, Option<String>>,
            records: Vec<Proven>,
            indexes: BTreeMap<&'a str, String>,
        }
        #[derive(Serialize)]
        struct Before {
            leaf: String,
            hashes: Vec<String>,
        }
        let before = |LeafBefore { leaf, hashes }: &LeafBefore| Before {
            leaf: leaf.text(),
            hashes: hashes.iter().map(write_hash).collect(),
        };
        let files = self.change.files.iter();
        let records = self.records.iter();
        json::write(&Document {
            version: VERSION,
            log: self.log.to_string(),
            leaf: self.leaf.text(),
            proof: self.proof.write(),
            before: self.before.as_ref().map(before),
            change: files.map(|(path, file)| (path.as_str(), file.as_deref().map(encode_base64))).collect(),
            records: records.map(|(record, path)| Proven::new(record.text(), path)).collect(),
            indexes: self.indexes.iter().map(|(path, bytes)| (path.as_str(), encode_base64(bytes))).collect(),
        })
    }
}

json_fields!(object StateLie version VERSION {
    change: with(parse_change), log: text(VerifierKey::parse_log), leaf: text(Leaf::parse),
    proof: text(InclusionProof::parse), before, records: with(parse_records), indexes,
});
json_fields!(object LeafBefore { hashes: with(parse_hashes), leaf: text(Leaf::parse) });
json_texts!(Arc<[u8]>: |text| decode_padded_base64(text).map(Self::from).ok_or("must be base64"));

fn parse_change(field: &Field<'_>) -> Result<Change, ParseError> {
    Ok(Change { files: BTreeMap::parse_field(field)?, ..Change::default() })
}

fn parse_records(list: &Field<'_>) -> Result<Vec<(Record, TriePath)>, ParseError> {
    list.list(|field| parse_proven(field, Record::parse))
}

fn parse_hashes(list: &Field<'_>) -> Result<Vec<Hash>, ParseError> {
    if list.array()?.len() > PROOF_HASHES {
        return Err(list.error(format!("has more than {PROOF_HASHES} hashes")));
    }
    list.list(|entry| entry.parsed(|text| parse_hash(text).ok_or("must be a hash")))
}
