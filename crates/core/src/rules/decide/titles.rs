//! How the commit message of each decision begins. A replay reads there what a commit claims to be.

pub(crate) const CREATE: &str = "Create the repository";
pub(crate) const REGISTER: &str = "Register";
pub(crate) const PROPOSE: &str = "Propose signers for";
pub(crate) const REPLACE: &str = "Replace the proposed signers of";
pub(crate) const SIGN: &str = "Sign";
pub(crate) const COMPLETE: &str = "Sign and complete";
pub(crate) const ACTIVATE: &str = "Activate the signers of";
pub(crate) const ADD: &str = "Add";
pub(crate) const CORRECT: &str = "Correct";
pub(crate) const RECORD_REVOCATION: &str = "Record a revocation signature on";
pub(crate) const REVOKE: &str = "Revoke";
pub(crate) const DROP: &str = "Drop the pending signers of";
