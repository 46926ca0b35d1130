//! Releases that are verified without our tool: what `export` writes, and what the exported script accepts and refuses.

mod files;
mod rebuilds;
pub(crate) mod scene;
mod script;
mod tampered;
mod written;
