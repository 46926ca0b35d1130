//! Countersign's server: HTTP, its limits, pages, events and webhooks, on top of the store.

/// The tests of `web` share helpers with the test program.
#[cfg(test)]
extern crate self as countersign_server;

pub mod admin;
pub mod answer;
pub mod auth;
pub mod backoff;
pub mod blocks;
pub(crate) mod catalogue;
pub mod config;
pub mod date;
pub mod disk_space;
mod durable;
pub mod error;
pub mod events;
pub mod gravity;
pub mod health;
pub mod held_store;
pub mod host;
pub mod journal;
pub mod limits;
pub mod listen;
pub mod metrics;
pub mod mirror;
pub mod node;
pub mod observe;
pub mod openapi;
pub mod origin;
pub mod patience;
pub mod proxies;
pub mod rendering;
pub mod request_id;
pub mod role;
mod rounds;
pub mod routes;
pub mod routing;
pub mod sending;
pub mod start;
pub mod state;
pub mod table;
pub mod tls;
pub mod upstream;
pub mod web;
pub mod webhooks;
