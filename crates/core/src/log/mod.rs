//! Log: what happened, in an order that no one can change unseen. Notes, checkpoints, policies, trees and statuses.

pub mod checkpoint;
pub mod note;
pub mod policy;
pub mod proofs;
pub mod quorum_tree;
pub mod tree;
