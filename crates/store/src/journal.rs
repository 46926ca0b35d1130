//! The journal: every commit with the content that it changed, in the form that `git fast-import` reads. Another machine
//! can check and repeat what is in it, and gets the same commit ids (D67).

pub mod copy;
mod differing;
pub mod export;
pub mod follow;
pub(crate) mod milestones;
pub mod read;
pub mod write;
