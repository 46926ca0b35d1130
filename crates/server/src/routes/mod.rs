//! One file per noun. A handler parses, calls, answers; it decides nothing.

pub mod assets;
pub mod chain;
pub mod events;
pub mod files;
pub mod health;
pub mod history;
pub mod journal;
pub mod keys;
pub mod log;
pub(crate) mod metrics;
mod metrics_page;
pub mod pending;
pub mod ping;
pub mod propose;
pub mod reference;
pub mod releases;
pub mod signatures;
pub mod state;
pub mod statement;
pub mod withdraw;
pub mod witness;
