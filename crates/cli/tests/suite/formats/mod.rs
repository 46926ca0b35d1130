//! Signatures for ssh-keygen and minisign: signed in one act, stored, exported, and verified by those programs.

mod exported;
pub(crate) mod scene;
mod signed;
mod submitted;
