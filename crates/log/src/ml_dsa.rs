//! The secret half of a witness's ML-DSA-44 key (FIPS 204). Everyone else only verifies, which `core` does.

use std::fmt;

use countersign_core::values::ml_dsa::{ML_DSA_SIGNATURE_BYTES, MlDsaKey};
use ml_dsa::signature::{Keypair as _, Signer as _};
use ml_dsa::{MlDsa44, Seed, SigningKey};

/// An ML-DSA-44 key that can sign. It is wiped from memory when it is dropped.
pub struct MlDsaSecret(SigningKey<MlDsa44>);

impl MlDsaSecret {
    /// The key that FIPS 204 derives from these 32 bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_seed(&Seed::from(*seed)))
    }

    pub fn public_key(&self) -> MlDsaKey {
        MlDsaKey::from_bytes(self.0.verifying_key().encode().into())
    }

    /// Signs these bytes, with the empty context. The same bytes give the same signature, so no generator of random numbers
    /// can give the key away.
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
