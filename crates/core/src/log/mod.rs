//! The log: what happened, in an order that no one can change unseen. Leaves and statuses follow from the commits, and
//! witnesses cosign the root of all leaves.

pub mod checkpoint;
pub mod note;
pub mod policy;
pub mod record;
pub mod status;
pub mod tile;
pub mod tree;
pub mod trie;
