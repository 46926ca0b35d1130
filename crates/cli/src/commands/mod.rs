//! One file per command.

pub(crate) mod admin;
pub(crate) mod chain;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod download;
pub(crate) mod drill;
pub(crate) mod export;
pub(crate) mod fsck;
pub(crate) mod incident;
pub(crate) mod keygen;
pub(crate) mod man;
pub(crate) mod monitor;
pub(crate) mod object;
pub(crate) mod pending;
pub(crate) mod propose;
pub(crate) mod release;
pub(crate) mod revoke;
pub(crate) mod serve;
pub(crate) mod sign;
pub(crate) mod signers;
pub(crate) mod staple;
mod statements;
pub(crate) mod status;
pub(crate) mod trust;
pub(crate) mod verify;
pub(crate) mod veto;
pub(crate) mod watch;
