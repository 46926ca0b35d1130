//! Drives the program `countersign` as its users do: a process, a socket, a Git repository, a file server.
//! What is expected comes from the specification and the numbered decisions (D1–D40), not from the code.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

mod api;
mod ci;
mod client;
mod cluster;
mod events;
mod export;
mod forges;
mod formats;
mod fsck;
mod hostile;
mod incident;
mod journal;
mod keys;
mod limits;
mod log;
mod mirror;
mod objections;
mod operation;
mod packaging;
mod requests;
mod scenarios;
mod staple;
mod store;
mod veto;
mod web;
mod webhooks;
mod witness;
