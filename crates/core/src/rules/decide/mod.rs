//! The decisions: each reads a snapshot, changes nothing, and says what should change or why not.
//!
//! The store may run a decision more than once; it must give the same answer for the same snapshot and time.

pub mod activate;
pub mod assets;
pub mod proposal;
pub mod rebuild;
pub mod register;
pub mod sign;
pub mod statement;
pub mod update;
pub mod withdraw;

pub use crate::rules::decide::proposal::{
    MAX_LEAD_MINUTES, Proposal, ProposalFault, Proposed, check_submitter,
};
