//! Checkpoints of a log (c2sp.org/tlog-checkpoint), and what witnesses add to them (tlog-cosignature).

use std::{collections::BTreeMap, fmt::Write as _};

use thiserror::Error;

use crate::log::note::{MAX_NUMBER, Note, NoteError, NoteSignature, NoteSigner, parse_number};
use crate::log::tree::{Hash, TreeHead, empty_root, parse_hash, write_hash};
use crate::values::bounds::{KEY_NAME_BYTES, PROOF_HASHES, WITNESS_REQUEST_BYTES};
use crate::values::{key::SecretKey, shown::is_unseen, shown::quoted};
use crate::values::{verifier_key::KeyKind, verifier_key::VerifierKey};

/// The whole log at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The origin, which says which log it is: the name of its key.
    pub origin: String,
    pub size: u64,
    pub root: Hash,
}

/// A checkpoint with the log's signature, which was verified, and with cosignatures, which were verified too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCheckpoint {
    checkpoint: Checkpoint,
    /// The text, with the extension lines that other logs have. Ours writes none.
    text: String,
    log: NoteSigner,
    /// The newest of each key of a witness, by the key alone.
    cosignatures: BTreeMap<Vec<u8>, Cosignature>,
}

/// The word of a witness that, at `time`, this was the largest tree that it had seen of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosignature {
    pub witness: VerifierKey,
    /// The time in Unix seconds.
    pub time: u64,
    pub line: NoteSignature,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckpointError {
    #[error("malformed: {0}")]
    Form(&'static str),
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error("the log {} is not known", quoted(.0))]
    UnknownOrigin(String),
    #[error("no known key of the log {} has signed its checkpoint", quoted(.0))]
    NotSigned(String),
}

impl Checkpoint {
    /// A checkpoint as our logs write it: three lines, and no extension.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let checkpoint = Self::parse_extended(text)?;
        let is_whole = checkpoint.text() == text;
        if is_whole { Ok(checkpoint) } else { Err(CheckpointError::Form("it has extension lines")) }
    }

    /// A checkpoint of any log: lines that we do not know can follow.
    pub fn parse_extended(text: &str) -> Result<Self, CheckpointError> {
        let form = CheckpointError::Form;
        let lines = text.strip_suffix('\n').ok_or(form("its last line has no end"))?;
        let lines: Vec<&str> = lines.split('\n').collect();
        let [origin, size, root, extension @ ..] = lines.as_slice() else {
            return Err(form("it must have three lines: origin, size and root"));
        };
        if origin.is_empty() || origin.len() > KEY_NAME_BYTES || origin.chars().any(is_unseen) {
            return Err(form("its origin is empty, too long, or has invisible characters"));
        }
        if extension.iter().any(|line| line.is_empty()) {
            return Err(form("it has an empty line"));
        }
        let size = parse_number(size).ok_or(form("its size is not a number in plain digits"))?;
        let root = parse_hash(root).ok_or(form("its root is not base64 of 32 bytes"))?;
        if size == 0 && root != empty_root() {
            return Err(form("it is empty, but its root is not that of the empty tree"));
        }
        Ok(Self { origin: (*origin).to_owned(), size, root })
    }

    /// The text that the log signs.
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, write_hash(&self.root))
    }

    pub fn head(&self) -> TreeHead {
        TreeHead { size: self.size, root: self.root }
    }

    /// Signs the checkpoint with a key in memory, whose name is the origin. With another signer, such as an agent, make
    /// the note of `text` and `NoteSignature::of_log`, and open it.
    pub fn sign(self, key: &VerifierKey, secret: &SecretKey) -> SignedCheckpoint {
        let text = self.text();
        let log =
            NoteSigner { key: key.clone(), time: None, line: NoteSignature::sign(&text, key, secret, 0) };
        SignedCheckpoint { checkpoint: self, text, log, cosignatures: BTreeMap::new() }
    }
}

impl SignedCheckpoint {
    /// Opens a note that one of `logs` has signed, and verifies the cosignatures of `witnesses`. A log signs under its own
    /// origin only.
    pub fn open(
        note: &Note,
        logs: &[VerifierKey],
        witnesses: &[VerifierKey],
    ) -> Result<Self, CheckpointError> {
        let checkpoint = Checkpoint::parse_extended(note.text())?;
        let origin = &checkpoint.origin;
        let is_its_key = |key: &&VerifierKey| key.kind() == KeyKind::Log && key.name() == origin;
        let logs: Vec<VerifierKey> = logs.iter().filter(is_its_key).cloned().collect();
        if logs.is_empty() {
            return Err(CheckpointError::UnknownOrigin(origin.clone()));
        }
        let log = note.signers(&logs)?.into_iter().next();
        let log = log.ok_or_else(|| CheckpointError::NotSigned(origin.clone()))?;
        let text = note.text().to_owned();
        let mut signed = Self { checkpoint, text, log, cosignatures: BTreeMap::new() };
        signed.add_cosignatures(note.signatures(), witnesses)?;
        Ok(signed)
    }

    /// Adds the cosignatures of known witnesses among these lines, and gives them. A key keeps its newest one.
    pub fn add_cosignatures(
        &mut self,
        lines: &[NoteSignature],
        witnesses: &[VerifierKey],
    ) -> Result<Vec<Cosignature>, NoteError> {
        let mut note = Note::new(self.text.clone());
        lines.iter().for_each(|line| note.add(line.clone()));
        let mut added = Vec::new();
        for signer in note.signers(witnesses)? {
            // Only witnesses sign with a time.
            let Some(time) = signer.time else { continue };
            let cosignature = Cosignature { witness: signer.key, time, line: signer.line };
            let key = cosignature.witness.bytes().to_vec();
            if self.cosignatures.get(&key).is_none_or(|newest| newest.time < time) {
                self.cosignatures.insert(key, cosignature.clone());
            }
            added.push(cosignature);
        }
        Ok(added)
    }

    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The exact text that was signed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The key of the log that signed it.
    pub fn log_key(&self) -> &VerifierKey {
        &self.log.key
    }

    pub fn cosignatures(&self) -> impl Iterator<Item = &Cosignature> {
        self.cosignatures.values()
    }

    /// The note with the log's signature only, as witnesses get it.
    pub fn log_note(&self) -> Note {
        let mut note = Note::new(self.text.clone());
        note.add(self.log.line.clone());
        note
    }

    /// The note with the log's signature and all cosignatures.
    pub fn note(&self) -> Note {
        let mut note = self.log_note();
        self.cosignatures().for_each(|cosignature| note.add(cosignature.line.clone()));
        note
    }

    /// A witness's cosignature with an Ed25519 key in memory.
    pub fn cosign(&self, witness: &VerifierKey, secret: &SecretKey, time: u64) -> Cosignature {
        let time = time.clamp(1, MAX_NUMBER);
        let line = NoteSignature::sign(&self.text, witness, secret, time);
        Cosignature { witness: witness.clone(), time, line }
    }
}

// Proofs as texts, each with the checkpoint that it leads to: for witnesses (c2sp.org/tlog-witness) and for those who
// verify offline (c2sp.org/tlog-proof).

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
        let (old, proof) = parse_proof(head, "old ", "the request must begin with `old` and a size")?;
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
        let (index, hashes) = parse_proof(rest, "index ", "the proof has no index")?;
        Ok(Self { index, hashes, note: Note::parse(note.as_bytes())? })
    }

    pub fn write(&self) -> String {
        let hashes = write_hashes(&self.hashes);
        format!("{INCLUSION_PROOF}\nindex {}\n{hashes}\n{}", self.index, self.note)
    }
}

/// Parses a number behind its name, and a hash on each line below it.
fn parse_proof(
    lines: &str,
    name: &str,
    no_number: &'static str,
) -> Result<(u64, Vec<Hash>), CheckpointError> {
    let mut lines = lines.split('\n');
    let number = lines.next().and_then(|first| parse_number(first.strip_prefix(name)?));
    let number = number.ok_or(CheckpointError::Form(no_number))?;
    // One more than there can be shows that there are too many.
    let hashes: Option<Vec<Hash>> = lines.take(PROOF_HASHES + 1).map(parse_hash).collect();
    let hashes = hashes.filter(|hashes| hashes.len() <= PROOF_HASHES);
    let malformed = CheckpointError::Form("the proof has too many lines, or one that is not a hash");
    Ok((number, hashes.ok_or(malformed)?))
}

fn write_hashes(hashes: &[Hash]) -> String {
    hashes.iter().fold(String::new(), |mut lines, hash| {
        let _ = writeln!(lines, "{}", write_hash(hash));
        lines
    })
}
