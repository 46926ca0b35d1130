//! Who signs checkpoints: a key in memory, or one that another program holds.

use std::fmt;

use countersign_core::{
    log::{
        checkpoint::{Checkpoint, CheckpointError, SignedCheckpoint},
        note::{Note, NoteSignature},
    },
    values::{
        key::{SecretKey, Signature},
        verifier_key::VerifierKey,
    },
};

use crate::error::LogError;

/// The key of the log. Its name is the origin.
pub struct LogSigner {
    key: VerifierKey,
    means: Means,
}

enum Means {
    Key(Box<SecretKey>),
    /// A key elsewhere, such as in an agent. Why it cannot sign is a sentence for the operator.
    Elsewhere(Box<SignText>),
}

type SignText = dyn Fn(&str) -> Result<Signature, String> + Send + Sync;

impl LogSigner {
    pub fn with_key(key: VerifierKey, secret: SecretKey) -> Self {
        Self { key, means: Means::Key(Box::new(secret)) }
    }

    /// A signer whose `sign` signs the bytes of a text. What it gives is verified.
    pub fn elsewhere(
        key: VerifierKey,
        sign: impl Fn(&str) -> Result<Signature, String> + Send + Sync + 'static,
    ) -> Self {
        Self { key, means: Means::Elsewhere(Box::new(sign)) }
    }

    /// The key of another server's log, which only that server signs.
    pub(crate) fn of_another(key: VerifierKey) -> Self {
        Self::elsewhere(key, |_| Err("this is another server's log".to_owned()))
    }

    pub fn key(&self) -> &VerifierKey {
        &self.key
    }

    pub(crate) fn sign(&self, checkpoint: Checkpoint) -> Result<SignedCheckpoint, LogError> {
        match &self.means {
            Means::Key(secret) => Ok(checkpoint.sign(&self.key, secret)),
            Means::Elsewhere(sign) => {
                let text = checkpoint.text();
                let signature = sign(&text).map_err(LogError::Signer)?;
                let mut note = Note::new(text);
                note.add(NoteSignature::of_log(&self.key, signature));
                let signed = SignedCheckpoint::open(&note, std::slice::from_ref(&self.key), &[]);
                signed.map_err(|error: CheckpointError| LogError::Signer(error.to_string()))
            }
        }
    }
}

impl fmt::Debug for LogSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSigner").field("key", &self.key).finish_non_exhaustive()
    }
}
