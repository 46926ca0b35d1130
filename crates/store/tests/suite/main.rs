#![allow(clippy::unwrap_used, reason = "a test")]

mod budget;
mod catalogue;
mod catalogue_keys;
mod failures;
mod faults;
mod folding;
mod index;
mod log;
mod missing;
mod nonces;
mod replay;
mod store;
mod support;
mod versions;
