//! The commands that people type, against a server that works.

mod bundle;
mod detached;
mod download;
mod errors;
mod flow;
mod forge;
mod interrupted;
mod locked;
mod man;
mod output;
mod people;
mod repeated;
mod replaced;
mod revoke;
mod revoke_offline;
mod rotation;
mod sign;
mod signers;
mod signers_edit;
mod terminal;
mod trust;
mod wait;
mod watch;
