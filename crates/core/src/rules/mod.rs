//! Rules: who may do what, when enough have agreed, and what changes then.

pub mod auth;
pub mod chain;
pub mod decide;
pub mod place;
pub mod quorum;
pub mod reproduction;
pub mod snapshot;
pub mod stored;
