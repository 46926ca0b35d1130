//! What is counted, and the page on which Prometheus reads it.
//!
//! Whoever does something counts it, next to where it happens; this module knows the names. Requests are counted here.

mod page;
mod requests;
mod route;

pub use self::{page::render, requests::Requests, route::Route};
