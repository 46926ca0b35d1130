//! The Git tree of a commit, in memory. Versions share whatever they have in common, so that keeping an old one costs
//! nothing, and a change copies only the directories on its paths.

pub(crate) mod changes;
pub(crate) mod dir;
pub(crate) mod edit;
pub(crate) mod load;
pub(crate) mod names;
