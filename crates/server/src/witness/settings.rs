//! What a witness is told at its start: its key, the logs that it cosigns, and whether it asks or is asked.

use countersign_core::values::verifier_key::VerifierKey;
use countersign_log::WitnessSigner;

#[derive(Debug, Clone)]
pub struct WitnessSettings {
    pub signer: WitnessSigner,
    /// Of the origin's log; `None` takes the one that the origin shows the first time.
    pub log_key: Option<VerifierKey>,
    /// Logs to serve as an ordinary witness.
    pub logs: Vec<VerifierKey>,
    /// Whether to fetch checkpoints and post cosignatures, instead of being asked.
    pub is_polling: bool,
}
