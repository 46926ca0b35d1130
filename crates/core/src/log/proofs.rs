//! Proofs as texts, each with the checkpoint that it leads to: for witnesses (c2sp.org/tlog-witness) and for those who
//! verify offline (c2sp.org/tlog-proof).

use std::fmt::Write as _;

use crate::{
    log::{
        checkpoint::CheckpointError,
        note::{Note, parse_number},
        tree::{Hash, parse_hash, write_hash},
    },
    values::bounds::{PROOF_HASHES, WITNESS_REQUEST_BYTES},
};

/// The body of `add-checkpoint`: the size that the witness has, the proof from there on, and the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessRequest {
    pub old: u64,
    pub proof: Vec<Hash>,
    pub note: Note,
}

impl WitnessRequest {
    pub fn parse(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let form = CheckpointError::Form;
        if bytes.len() > WITNESS_REQUEST_BYTES {
            return Err(form("the request is too large"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| form("the request is not UTF-8"))?;
        let (head, note) = text.split_once("\n\n").ok_or(form("the request has no empty line"))?;
        let (old, hashes) = head.split_once('\n').map_or((head, None), |(old, rest)| (old, Some(rest)));
        let old = old.strip_prefix("old ").and_then(parse_number);
        let old = old.ok_or(form("the request must begin with `old` and a size"))?;
        let proof = hashes.map_or(Some(Vec::new()), parse_hashes);
        let proof = proof.ok_or(form("the proof has too many lines, or one that is not a hash"))?;
        Ok(Self { old, proof, note: Note::parse(note.as_bytes())? })
    }

    pub fn write(&self) -> String {
        format!("old {}\n{}\n{}", self.old, write_hashes(&self.proof), self.note)
    }
}

/// A checkpoint with the proof that it includes a leaf (c2sp.org/tlog-proof, without extra data).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InclusionProof {
    /// The index of the leaf.
    pub index: u64,
    pub hashes: Vec<Hash>,
    pub note: Note,
}

const INCLUSION_PROOF: &str = "c2sp.org/tlog-proof@v1";

impl InclusionProof {
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let form = CheckpointError::Form;
        let (head, note) = text.split_once("\n\n").ok_or(form("the proof has no empty line"))?;
        let (first, rest) = head.split_once('\n').ok_or(form("the proof has no index"))?;
        if first != INCLUSION_PROOF {
            return Err(form("the proof must begin with `c2sp.org/tlog-proof@v1`"));
        }
        let (index, hashes) = rest.split_once('\n').map_or((rest, None), |(index, rest)| (index, Some(rest)));
        let index = index.strip_prefix("index ").and_then(parse_number);
        let index = index.ok_or(form("the proof has no index"))?;
        let hashes = hashes.map_or(Some(Vec::new()), parse_hashes);
        let hashes = hashes.ok_or(form("the proof has too many lines, or one that is not a hash"))?;
        Ok(Self { index, hashes, note: Note::parse(note.as_bytes())? })
    }

    pub fn write(&self) -> String {
        let hashes = write_hashes(&self.hashes);
        format!("{INCLUSION_PROOF}\nindex {}\n{hashes}\n{}", self.index, self.note)
    }
}

fn parse_hashes(lines: &str) -> Option<Vec<Hash>> {
    let mut hashes = Vec::new();
    for line in lines.split('\n') {
        if hashes.len() == PROOF_HASHES {
            return None;
        }
        hashes.push(parse_hash(line)?);
    }
    Some(hashes)
}

fn write_hashes(hashes: &[Hash]) -> String {
    hashes.iter().fold(String::new(), |mut lines, hash| {
        let _ = writeln!(lines, "{}", write_hash(hash));
        lines
    })
}
