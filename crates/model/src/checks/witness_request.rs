//! What a log asks a witness, and proofs with their checkpoint.

use countersign_core::log::proofs::{InclusionProof, WitnessRequest};

use super::promises::assert_shown;

pub fn check(data: &[u8]) {
    match WitnessRequest::parse(data) {
        Ok(request) => assert_eq!(request.write().as_bytes(), data, "a request has one spelling"),
        Err(error) => assert_shown(&error),
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    match InclusionProof::parse(text) {
        Ok(proof) => assert_eq!(proof.write(), text, "a proof has one spelling"),
        Err(error) => assert_shown(&error),
    }
}
