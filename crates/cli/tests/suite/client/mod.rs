//! The commands that people type, against a server that works.

mod bundle;
mod detached;
mod download;
mod flow;
mod forge;
mod interrupted;
mod locked;
mod output;
mod revoke;
mod rotation;
mod sign;
mod signers;
mod terminal;
mod trust;
mod wait;
mod watch;
