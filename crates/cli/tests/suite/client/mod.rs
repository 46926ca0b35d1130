//! The commands that people type, against a server that works.

mod config;
mod discovery;
mod download;
mod errors;
mod forge;
mod locked;
mod moments;
mod output;
mod people;
mod repeated;
mod rotation;
mod several;
mod sign;
mod signers_log;
mod terminal;
mod trust;
mod wait;
mod watch;
mod whole_release;
