//! The commands that people type, against a server that works.

mod bundle;
mod config;
mod detached;
mod discovery;
mod download;
mod flow;
mod forge;
mod interrupted;
mod locked;
mod names;
mod output;
mod revoke;
mod rotation;
mod sign;
mod signers;
mod terminal;
mod trust;
mod wait;
mod watch;
mod whole_release;
