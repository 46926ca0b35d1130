//! Checking that a whole history was made by the rules, commit by commit. Only reads: it takes no lock, and a server may
//! be at work beside it.
//!
//! What the rules are, [`replay`] knows. Here commits become states, and states differences.

mod plain;
pub mod replay;
pub(crate) mod report;
mod walk;

pub use crate::audit::report::{AuditEvent, CheckError, Checked, Finding};
pub use crate::audit::walk::{check, read_newest};
