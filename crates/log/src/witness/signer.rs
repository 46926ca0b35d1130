//! The key of a witness: in memory, or held by another program.

use std::{fmt, sync::Arc};

use countersign_core::{
    log::note::{NoteSignature, cosigned_text},
    values::{
        key::{SecretKey, Signature},
        verifier_key::VerifierKey,
    },
};

#[derive(Clone)]
pub struct WitnessSigner {
    key: VerifierKey,
    sign: Arc<SignText>,
}

type SignText = dyn Fn(&str, u64) -> Result<NoteSignature, String> + Send + Sync;

impl WitnessSigner {
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
        let sign = move |text: &str, time| {
            let signature = sign(&cosigned_text(text, time))?;
            Ok(NoteSignature::of_witness(&own, time, signature))
        };
        Self { key, sign: Arc::new(sign) }
    }

    pub fn key(&self) -> &VerifierKey {
        &self.key
    }

    /// A cosignature without a time says nothing.
    pub(super) fn cosign(&self, text: &str, time: u64) -> Result<NoteSignature, String> {
        (self.sign)(text, time.max(1))
    }
}

impl fmt::Debug for WitnessSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WitnessSigner").field("key", &self.key).finish_non_exhaustive()
    }
}
