//! ML-DSA-44 keys (FIPS 204), with which witnesses cosign so that a quantum computer cannot forge it (D263). Here they only
//! verify; a witness signs.

use std::{fmt, sync::Arc};

use ml_dsa::{EncodedVerifyingKey, MlDsa44, Signature, VerifyingKey};

use crate::values::key::encode_base64;

/// The length of a public key, and of a signature.
pub const ML_DSA_KEY_BYTES: usize = 1_312;
pub const ML_DSA_SIGNATURE_BYTES: usize = 2_420;

/// An ML-DSA-44 public key. Each text of this length is one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MlDsaKey(Arc<[u8; ML_DSA_KEY_BYTES]>);

impl MlDsaKey {
    pub fn from_bytes(bytes: [u8; ML_DSA_KEY_BYTES]) -> Self {
        Self(Arc::new(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; ML_DSA_KEY_BYTES] {
        &self.0
    }

    /// Whether this key has signed these bytes, with the empty context.
    pub(crate) fn has_signed(&self, signed: &[u8], signature: &[u8]) -> bool {
        // This expands the key, which is most of the work. No one verifies enough of them to keep the result.
        let key = VerifyingKey::<MlDsa44>::decode(&EncodedVerifyingKey::<MlDsa44>::from(*self.0));
        Signature::try_from(signature).is_ok_and(|signature| key.verify_with_context(signed, &[], &signature))
    }
}

impl fmt::Debug for MlDsaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MlDsaKey({})", encode_base64(self.as_bytes()))
    }
}
