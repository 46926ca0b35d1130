//! The commands that people type, against a server that works.

mod discovery;
mod download;
mod errors;
mod forge;
mod locked;
mod moments;
mod output;
mod repeated;
mod several;
mod signers_log;
mod terminal;
mod trust;
mod wait;
mod watch;
