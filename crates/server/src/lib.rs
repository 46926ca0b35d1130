//! Countersign's server: HTTP, its limits, pages, events and webhooks, on top of the store.

pub mod api;
pub mod events;
pub mod follow;
pub mod http;
pub mod limits;
pub mod metrics;
pub mod nodes;
pub mod operate;
pub mod serve;
pub mod web;
