//! The Git tree of a commit, in memory. Versions share whatever they have in common, so that keeping an old one costs
//! nothing, and a change copies only the directories on its paths.

pub mod dir;
pub mod edit;
pub(crate) mod load;
