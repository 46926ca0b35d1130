//! This server among others: its role, its node in a cluster, and the witnesses that it asks.

pub mod asking;
pub mod log_summary;
pub mod node;
