//! The routes of the API, each with its description and its handler, and the state that handlers share.

pub mod auth;
mod caps;
pub mod openapi;
pub mod routes;
pub mod routing;
pub mod state;
