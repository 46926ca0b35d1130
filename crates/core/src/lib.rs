//! What server, client and mirror must agree on: formats, keys, quorum, decisions and verification.
//!
//! Pure: no I/O, no clock, no randomness, no async. Whatever a decision needs is a parameter of it.

pub mod answer;
pub mod api;
pub mod auth;
pub mod bounds;
pub mod bundle;
pub mod chain;
pub mod checksums;
mod claim;
pub mod consent;
pub mod decide;
pub mod difference;
pub mod digest;
pub mod event;
pub mod history;
pub mod index;
pub mod json;
pub mod key;
pub mod layout;
pub mod metadata;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod overview;
pub mod path;
pub mod place;
pub mod query;
pub mod quorum;
pub mod registration;
pub mod replay;
pub mod repository;
pub mod revocation;
pub mod shown;
pub mod signatures;
pub mod signers;
pub mod snapshot;
pub mod stored;
pub mod strength;
pub mod time;
pub mod to_sign;
pub mod trust;
pub mod verify;
pub mod wire;
