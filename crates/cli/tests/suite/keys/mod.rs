//! Key files, agents and passphrases.

pub(crate) mod agent;
mod keygen;
mod openssh;
mod terminal;
