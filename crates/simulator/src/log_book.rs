//! What the key of a log has signed, and what anyone has seen of the log. It outlives every crash, as the memory of the
//! log's users does.

use std::{collections::BTreeMap, path::Path, sync::Arc, sync::Mutex, sync::MutexGuard, sync::PoisonError};

use countersign_core::log::{checkpoint::Checkpoint, note::Note, tree::Hash, tree::TreeHead};
use countersign_core::values::key::{SecretKey, Signature};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_log::{CheckpointFiles, CheckpointSigner};
use ed25519_dalek::{Signer as _, SigningKey};

use crate::script::{Breach, Guarantee};

const ORIGIN: &str = "sign.example.org/log";
const LOG_SEED: [u8; 32] = [100; 32];

#[derive(Debug, Clone, Default)]
pub struct LogBook(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    signed: BTreeMap<u64, Hash>,
    /// The largest that was shown, as the newest one and as a cosigned one.
    shown: u64,
    cosigned: u64,
    broken: Option<Breach>,
    is_agent_gone: bool,
    refusals: u64,
}

pub fn log_key() -> VerifierKey {
    let public = SecretKey::from_seed(&LOG_SEED).public_key();
    VerifierKey::new(ORIGIN, KeyKind::Log, public).expect("a name")
}

/// Signs a text as an agent does.
pub fn sign_text(seed: &[u8; 32], text: &str) -> Signature {
    Signature::from_bytes(SigningKey::from_bytes(seed).sign(text.as_bytes()).to_bytes())
}

impl LogBook {
    /// A key that remembers what it signs.
    pub fn signer(&self) -> CheckpointSigner {
        let book = self.clone();
        CheckpointSigner::elsewhere(log_key(), move |text| {
            let checkpoint = Checkpoint::parse(text).map_err(|error| error.to_string())?;
            book.sign(&checkpoint)?;
            Ok(sign_text(&LOG_SEED, text))
        })
    }

    fn sign(&self, checkpoint: &Checkpoint) -> Result<(), String> {
        let mut book = self.lock();
        if std::mem::take(&mut book.is_agent_gone) {
            book.refusals += 1;
            return Err("the agent is gone".to_owned());
        }
        let Checkpoint { size, root, .. } = checkpoint;
        if *book.signed.entry(*size).or_insert(*root) != *root {
            book.breaks(Guarantee::OneLog, format!("two roots were signed for {size} commits"));
        }
        Ok(())
    }

    /// Makes the next signature fail.
    pub fn lose_agent(&self) {
        self.lock().is_agent_gone = true;
    }

    /// How many signatures have failed.
    pub fn refusals(&self) -> u64 {
        self.lock().refusals
    }

    /// The newest checkpoint as anyone can see it.
    pub fn note_shown(&self, note: &str) {
        let Some(checkpoint) = parse(note) else { return };
        let mut book = self.lock();
        let (size, shown) = (checkpoint.size, book.shown);
        if size < shown {
            book.breaks(Guarantee::OneLog, format!("{size} commits are shown, and {shown} were before"));
        }
        if book.signed.get(&size) != Some(&checkpoint.root) {
            book.breaks(Guarantee::OneLog, format!("the key has not signed what is shown of {size} commits"));
        }
        book.shown = size;
    }

    /// The newest one that witnesses have cosigned.
    pub fn note_cosigned(&self, note: &str) {
        let Some(checkpoint) = parse(note) else { return };
        let mut book = self.lock();
        let (size, cosigned) = (checkpoint.size, book.cosigned);
        if size < cosigned {
            book.breaks(
                Guarantee::OneLog,
                format!("{size} commits are cosigned, and {cosigned} were before"),
            );
        }
        book.cosigned = size;
    }

    /// Checks after a crash that what was shown is on record, in the directory of the log.
    pub fn check_record(&self, dir: &Path) -> Result<(), Breach> {
        let shown = self.lock().shown;
        let recorded = std::fs::read_to_string(dir.join(CheckpointFiles::NEWEST)).ok();
        let recorded = recorded.as_deref().and_then(parse).map_or(0, |checkpoint| checkpoint.size);
        if recorded >= shown {
            return Ok(());
        }
        let what = format!("{shown} commits were shown, and {recorded} are on record");
        Err(Breach::new(Guarantee::OneLog, what))
    }

    pub fn signed(&self) -> Vec<TreeHead> {
        let signed = &self.lock().signed;
        signed.iter().map(|(size, root)| TreeHead { size: *size, root: *root }).collect()
    }

    pub fn check(&self) -> Result<(), Breach> {
        self.lock().broken.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn breaks(&mut self, invariant: Guarantee, what: String) {
        self.broken.get_or_insert_with(|| Breach::new(invariant, what));
    }
}

fn parse(note: &str) -> Option<Checkpoint> {
    Checkpoint::parse(Note::parse(note.as_bytes()).ok()?.text()).ok()
}
