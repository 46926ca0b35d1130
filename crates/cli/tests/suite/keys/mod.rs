//! Key files, agents and passphrases.

mod agent;
mod keygen;
mod openssh;
mod terminal;
