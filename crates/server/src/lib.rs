//! Countersign's server: HTTP, the durable Git store, and the nonces it has seen.

mod answer;
pub mod app;
pub mod auth;
pub mod config;
mod date;
pub mod error;
pub mod events;
pub mod fetching;
pub mod health;
mod host;
pub mod limits;
pub mod listen;
pub mod metrics;
pub mod observe;
pub mod openapi;
pub mod proxies;
pub mod releases;
pub mod router;
pub mod routes;
pub mod sending;
pub mod table;
pub mod tls;
pub mod web;
pub mod webhooks;
