//! Key files, agents and passphrases.

pub(crate) mod agent;
mod fido;
mod keygen;
mod openssh;
mod terminal;
