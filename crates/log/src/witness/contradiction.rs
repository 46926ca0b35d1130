//! A log that contradicts what its witness knows.

use countersign_core::log::{proofs::WitnessRequest, tree::Hash};

/// What the log says, and what it should say.
#[derive(Debug, Clone)]
pub(super) struct Contradiction {
    pub(super) origin: String,
    pub(super) reason: String,
    pub(super) size: u64,
    /// The root that the witness has computed itself.
    pub(super) own_root: Option<Hash>,
    /// What the log has sent, if its own proof shows the contradiction.
    pub(super) shown_by: Option<WitnessRequest>,
}
