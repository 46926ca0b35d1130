mod checkpoints;
mod derivation;
mod notes;
mod policies;
mod records;
mod trees;
mod tries;
pub(crate) mod world;
