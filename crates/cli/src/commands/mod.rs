//! One file per command.

pub(crate) mod admin;
pub(crate) mod bundle;
pub(crate) mod chain;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod download;
pub(crate) mod fsck;
pub(crate) mod keygen;
pub(crate) mod man;
pub(crate) mod monitor;
pub(crate) mod pending;
pub(crate) mod ping;
pub(crate) mod propose;
pub(crate) mod release;
pub(crate) mod revoke;
pub(crate) mod serve;
pub(crate) mod serve_files;
pub(crate) mod sign;
pub(crate) mod signers;
pub(crate) mod staple;
pub(crate) mod status;
pub(crate) mod trust;
pub(crate) mod verify;
pub(crate) mod watch;
pub(crate) mod witness;
