//! Countersign's server: HTTP, its limits, pages, events and webhooks, on top of the store.

pub mod answer;
pub mod auth;
pub mod config;
mod date;
pub mod error;
pub mod events;
pub mod health;
mod held_store;
mod host;
pub mod limits;
pub mod listen;
pub mod metrics;
pub mod observe;
pub mod openapi;
mod origin;
pub mod proxies;
mod rendering;
mod request_id;
pub mod routes;
pub mod sending;
pub mod start;
pub mod state;
pub mod tls;
pub mod upstream;
pub mod web;
pub mod webhooks;
