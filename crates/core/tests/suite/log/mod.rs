mod checkpoints;
mod derivation;
mod go;
mod notes;
mod policies;
mod records;
mod trees;
mod tries;
pub(crate) mod world;
