mod checkpoints;
mod derivation;
mod notes;
mod policies;
mod ranges;
mod records;
mod trees;
mod tries;
pub(crate) mod world;
