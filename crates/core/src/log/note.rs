//! Signed notes (c2sp.org/signed-note): a text, an empty line, and a line for each signature (D84).

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::values::bounds::{NOTE_BYTES, NOTE_SIGNATURES};
use crate::values::key::{PublicKey, SecretKey, Signature, decode_padded_base64, encode_base64};
use crate::values::shown::quoted;
use crate::values::verifier_key::{KeyKind, ML_DSA_SIGNATURE_BYTES, TypedKey, VerifierKey};

/// The largest size of a tree, and the latest time: what every implementation can hold.
pub const MAX_NUMBER: u64 = (1 << 63) - 1;
const LINE_BEGINNING: &str = "— ";
/// The first bytes of what an ML-DSA-44 key signs.
const LABEL: &[u8] = b"subtree/v1\n\0";

/// A text with signatures, well-formed. Well-formed; which of them are right only `signers` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<NoteSignature>,
}

/// One line of a signature: `— NAME base64(id ‖ signature)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    name: String,
    id: [u8; 4],
    bytes: Vec<u8>,
}

/// A known key whose signature on a note was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSigner {
    pub key: VerifierKey,
    /// The time at which a witness signed, by its own word. A log says no time.
    pub time: Option<u64>,
    pub line: NoteSignature,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoteError {
    #[error("a signed note has at most {NOTE_BYTES} bytes")]
    TooLarge,
    #[error("a signed note has at most {NOTE_SIGNATURES} signatures")]
    TooManySignatures,
    #[error("not a signed note: {0}")]
    Form(&'static str),
    #[error("the signature of {} does not verify", quoted(.0))]
    BadSignature(String),
}

impl Note {
    /// A note that no one has signed. The text must be one of ours, of whole lines.
    pub fn new(text: String) -> Self {
        Self { text, signatures: Vec::new() }
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        let note = parse_text(bytes)?;
        // The text itself can have empty lines.
        let (text, lines) = note.rsplit_once("\n\n").ok_or(NoteError::Form("it has no empty line"))?;
        Ok(Self { text: format!("{text}\n"), signatures: parse_lines(lines)? })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    pub fn add(&mut self, signature: NoteSignature) {
        self.signatures.push(signature);
    }

    /// Finds which of the `known` keys have signed. Signatures of other keys are ignored, but one wrong signature of a
    /// known key refuses the note: someone has tampered with it.
    pub fn signers(&self, known: &[VerifierKey]) -> Result<Vec<NoteSigner>, NoteError> {
        let mut signers = Vec::new();
        for line in &self.signatures {
            let Some(key) = known.iter().find(|key| key.name() == line.name && key.id() == line.id) else {
                continue;
            };
            let time = line.verify(&self.text, key);
            let time = time.ok_or_else(|| NoteError::BadSignature(line.name.clone()))?;
            signers.push(NoteSigner { key: key.clone(), time, line: line.clone() });
        }
        Ok(signers)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|line| write!(f, "{line}"))
    }
}

impl NoteSignature {
    /// Parses lines alone, as a witness answers.
    pub fn parse_lines(bytes: &[u8]) -> Result<Vec<Self>, NoteError> {
        parse_lines(parse_text(bytes)?)
    }

    /// The name of the key that signed, as the line says.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A log's signature over the text of a note.
    pub fn of_log(key: &VerifierKey, signature: Signature) -> Self {
        Self { name: key.name().to_owned(), id: key.id(), bytes: signature.ed25519_bytes().to_vec() }
    }

    /// A witness's signature over what [`cosigned_text`] gives.
    pub fn of_witness(key: &VerifierKey, time: u64, signature: Signature) -> Self {
        Self::with_time(key, time, signature.ed25519_bytes())
    }

    /// A witness's ML-DSA-44 signature over what [`cosigned_bytes`] gives.
    pub fn of_ml_dsa(key: &VerifierKey, time: u64, signature: &[u8; ML_DSA_SIGNATURE_BYTES]) -> Self {
        Self::with_time(key, time, signature)
    }

    fn with_time(key: &VerifierKey, time: u64, signature: &[u8]) -> Self {
        let bytes = [time.to_be_bytes().as_slice(), signature].concat();
        Self { name: key.name().to_owned(), id: key.id(), bytes }
    }

    /// Signs with an Ed25519 key in memory. `time` is left out of a log's signature.
    pub fn sign(text: &str, key: &VerifierKey, secret: &SecretKey, time: u64) -> Self {
        match key.kind() {
            KeyKind::Log => Self::of_log(key, secret.sign_text(text.as_bytes())),
            KeyKind::Witness => {
                Self::of_witness(key, time, secret.sign_text(cosigned_text(text, time).as_bytes()))
            }
        }
    }

    /// The time if there is one; `None` if the signature does not verify.
    fn verify(&self, text: &str, key: &VerifierKey) -> Option<Option<u64>> {
        match key.typed() {
            TypedKey::Log(log) => is_signed(log, text, &self.bytes).then_some(None),
            TypedKey::Witness(witness) => {
                let (time, signature) = self.split_time()?;
                is_signed(witness, &cosigned_text(text, time), signature).then_some(Some(time))
            }
            TypedKey::MlDsaWitness(witness) => {
                let (time, signature) = self.split_time()?;
                let signed = cosigned_bytes(text, key.name(), time)?;
                witness.has_signed(&signed, signature).then_some(Some(time))
            }
        }
    }

    /// The time of a cosignature, and the signature. No time means that the witness does not say that this was its largest
    /// tree.
    fn split_time(&self) -> Option<(u64, &[u8])> {
        let (time, signature) = self.bytes.split_first_chunk()?;
        let time = Some(u64::from_be_bytes(*time)).filter(|time| (1..=MAX_NUMBER).contains(time))?;
        Some((time, signature))
    }
}

fn is_signed(key: &PublicKey, text: &str, signature: &[u8]) -> bool {
    let signature = signature.try_into().map(Signature::from_bytes);
    signature.is_ok_and(|signature| key.verify_text(text.as_bytes(), &signature).is_ok())
}

/// Writes the line with its line break.
impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [self.id.as_slice(), &self.bytes].concat();
        writeln!(f, "{LINE_BEGINNING}{} {}", self.name, encode_base64(&bytes))
    }
}

/// What an Ed25519 key of a witness signs: a time, and the text of a checkpoint.
pub fn cosigned_text(text: &str, time: u64) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}

/// What an ML-DSA-44 key of a witness signs: its name, a time, and origin, size and root of a checkpoint; of its extension
/// lines nothing (D263). `None` if the text is no checkpoint, or a name too long.
pub fn cosigned_bytes(text: &str, name: &str, time: u64) -> Option<Vec<u8>> {
    let mut lines = text.split('\n');
    let (origin, size, root) = (lines.next()?, parse_number(lines.next()?)?, lines.next()?);
    let root = decode_padded_base64(root).filter(|root| root.len() == 32)?;
    let named = |name: &str| Some([&[u8::try_from(name.len()).ok()?], name.as_bytes()].concat());
    // All leaves, from the first one on.
    let leaves = [0_u64.to_be_bytes(), size.to_be_bytes()].concat();
    Some([LABEL, &named(name)?, &time.to_be_bytes(), &named(origin)?, &leaves, &root].concat())
}

/// A number of a log, in the one spelling that it has.
pub fn parse_number(text: &str) -> Option<u64> {
    parse_plain(text).filter(|number| *number <= MAX_NUMBER)
}

/// A number in plain digits: `parse` would accept a plus sign and leading zeros.
pub(crate) fn parse_plain<T: FromStr + ToString>(text: &str) -> Option<T> {
    text.parse().ok().filter(|number: &T| number.to_string() == text)
}

fn parse_text(bytes: &[u8]) -> Result<&str, NoteError> {
    if bytes.len() > NOTE_BYTES {
        return Err(NoteError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| NoteError::Form("it is not UTF-8"))?;
    if text.bytes().any(|byte| byte < b' ' && byte != b'\n') {
        return Err(NoteError::Form("it has a control character"));
    }
    Ok(text)
}

fn parse_lines(text: &str) -> Result<Vec<NoteSignature>, NoteError> {
    let lines = text.strip_suffix('\n').ok_or(NoteError::Form("its last line has no end"))?;
    let mut signatures = Vec::new();
    for line in lines.split('\n') {
        if signatures.len() == NOTE_SIGNATURES {
            return Err(NoteError::TooManySignatures);
        }
        signatures.push(parse_line(line).ok_or(NoteError::Form("a line of it is not a signature"))?);
    }
    Ok(signatures)
}

fn parse_line(line: &str) -> Option<NoteSignature> {
    let (name, encoded) = line.strip_prefix(LINE_BEGINNING)?.split_once(' ')?;
    if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c == '+') {
        return None;
    }
    let decoded = decode_padded_base64(encoded)?;
    let (id, bytes) = decoded.split_first_chunk()?;
    // An empty signature is none.
    (!bytes.is_empty()).then(|| NoteSignature { name: name.to_owned(), id: *id, bytes: bytes.to_vec() })
}
