//! What a log needs to begin, and the keys with which logs and witnesses sign.

use std::{fmt, path::Path, path::PathBuf, sync::Arc, time::Duration};

use countersign_core::log::checkpoint::{Checkpoint, SignedCheckpoint};
use countersign_core::log::note::{Note, NoteSignature, cosigned_bytes, cosigned_text};
use countersign_core::log::policy::Policy;
use countersign_core::values::key::{SecretKey, Signature};
use countersign_core::values::verifier_key::{
    KeyKind, ML_DSA_SIGNATURE_BYTES, MlDsaKey, TypedKey, VerifierKey, VerifierKeyError,
};
use ml_dsa::signature::{Keypair as _, Signer as _};
use ml_dsa::{MlDsa44, Seed, SigningKey};

use crate::{error::LogError, keeper::CheckpointKeeper};

/// Checkpoints that wait for witnesses, each with its version of the map. Beyond it the oldest goes.
pub const MAX_WAITING: usize = 64;
/// A log that signs nothing has nothing to do but follow.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct LogOptions {
    /// The directory of the caches.
    pub dir: PathBuf,
    pub signer: Arc<CheckpointSigner>,
    pub keeper: Box<dyn CheckpointKeeper>,
    /// The least time between two checkpoints.
    pub checkpoint_every: Duration,
    /// How often witnesses are asked again while nothing is new.
    pub heartbeat_every: Duration,
    /// The witnesses and their quorum; `None`: no one is asked.
    pub policy: Option<Policy>,
    /// Whether to sign nothing before [`crate::TransparencyLog::allow_signing`]: the witnesses are asked first what
    /// they have seen.
    pub waits_for_witnesses: bool,
    /// A checkpoint of this log that a mirror has copied, as a note. The log must continue it.
    pub copied: Option<Vec<u8>>,
}

impl LogOptions {
    /// Settings for a log that another server signs, and that is only derived here.
    pub(crate) fn of_another(dir: &Path, key: VerifierKey, keeper: Box<dyn CheckpointKeeper>) -> Self {
        let signer = CheckpointSigner::elsewhere(key, |_| Err("this is another server's log".to_owned()));
        Self {
            dir: dir.to_owned(),
            signer: Arc::new(signer),
            keeper,
            checkpoint_every: IDLE,
            heartbeat_every: IDLE,
            policy: None,
            waits_for_witnesses: true,
            copied: None,
        }
    }
}

// Who signs checkpoints: a key in memory, or one that another program holds.

/// The key of a log or of a witness. The name of a log's key is the origin.
#[derive(Clone)]
pub struct CheckpointSigner {
    key: VerifierKey,
    sign: Arc<SignNote>,
}

/// Signs the text of a checkpoint, a witness with the time. Why it cannot is a sentence for the operator.
type SignNote = dyn Fn(&str, u64) -> Result<NoteSignature, String> + Send + Sync;

impl CheckpointSigner {
    pub fn with_key(key: VerifierKey, secret: SecretKey) -> Self {
        let own = key.clone();
        let sign = move |text: &str, time| Ok(NoteSignature::sign(text, &own, &secret, time));
        Self { key, sign: Arc::new(sign) }
    }

    /// A signer whose `sign` signs the bytes of a text, as an agent does. What it gives is verified.
    pub fn elsewhere(
        key: VerifierKey,
        sign: impl Fn(&str) -> Result<Signature, String> + Send + Sync + 'static,
    ) -> Self {
        let own = key.clone();
        let sign = move |text: &str, time| match own.kind() {
            KeyKind::Log => Ok(NoteSignature::of_log(&own, sign(text)?)),
            KeyKind::Witness => Ok(NoteSignature::of_witness(&own, time, sign(&cosigned_text(text, time))?)),
        };
        Self { key, sign: Arc::new(sign) }
    }

    /// A witness's signer under this name, with an ML-DSA-44 key in memory.
    pub fn with_ml_dsa(name: &str, secret: MlDsaSecret) -> Result<Self, VerifierKeyError> {
        let key = VerifierKey::of(name, TypedKey::MlDsaWitness(secret.public_key()))?;
        let own = key.clone();
        let sign = move |text: &str, time| {
            let signed = cosigned_bytes(text, own.name(), time);
            let signed = signed.ok_or_else(|| "it is asked to sign what is no checkpoint".to_owned())?;
            Ok(NoteSignature::of_ml_dsa(&own, time, &secret.sign(&signed)?))
        };
        Ok(Self { key, sign: Arc::new(sign) })
    }

    pub fn key(&self) -> &VerifierKey {
        &self.key
    }

    pub(crate) fn sign(&self, checkpoint: &Checkpoint) -> Result<SignedCheckpoint, LogError> {
        let mut note = Note::new(checkpoint.text());
        note.add((self.sign)(note.text(), 0).map_err(LogError::Signer)?);
        let signed = SignedCheckpoint::open(&note, std::slice::from_ref(&self.key), &[]);
        signed.map_err(|error| LogError::Signer(error.to_string()))
    }

    /// A cosignature without a time says nothing.
    pub(crate) fn cosign(&self, text: &str, time: u64) -> Result<NoteSignature, String> {
        (self.sign)(text, time.max(1))
    }
}

impl fmt::Debug for CheckpointSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckpointSigner").field("key", &self.key).finish_non_exhaustive()
    }
}

/// An ML-DSA-44 key (FIPS 204) that can sign. It is wiped from memory when it is dropped. Only witnesses have one.
pub struct MlDsaSecret(SigningKey<MlDsa44>);

impl MlDsaSecret {
    /// The key that FIPS 204 derives from these 32 bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_seed(&Seed::from(*seed)))
    }

    pub fn public_key(&self) -> MlDsaKey {
        MlDsaKey::from_bytes(self.0.verifying_key().encode().into())
    }

    /// Signs these bytes, with the empty context. The same bytes give the same signature, so no generator of random
    /// numbers can give the key away.
    pub fn sign(&self, bytes: &[u8]) -> Result<[u8; ML_DSA_SIGNATURE_BYTES], String> {
        let signature =
            self.0.try_sign(bytes).map_err(|_| "ML-DSA found no signature of this checkpoint".to_owned())?;
        Ok(signature.encode().into())
    }
}

impl fmt::Debug for MlDsaSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaSecret").field("public", &self.public_key()).finish_non_exhaustive()
    }
}
