//! One file per subject: each route with its description and its handler. A handler parses, calls, answers; it decides
//! nothing.

pub mod assets;
pub mod catalogue;
pub mod files;
pub(crate) mod history;
pub mod log;
pub(crate) mod metrics;
pub mod propose;
pub mod service;
pub mod signatures;
pub mod state;
pub mod statements;
pub mod streams;
