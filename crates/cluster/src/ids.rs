//! Ids that only chance makes.

use uuid::{Builder, Uuid};

/// Of version 4.
pub(crate) fn random_uuid() -> Uuid {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    Builder::from_random_bytes(bytes).into_uuid()
}
