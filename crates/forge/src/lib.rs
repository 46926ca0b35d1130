//! Reads signers files and releases where they are published: URL forms (D6, D26, D27) and guarded requests (D28).
//!
//! The only code that opens outgoing connections on a user's behalf: a server's behind the guard, a client's wherever
//! its user says. It has no opinion on HTTP status codes of ours, reads no configuration and logs nothing.

pub mod checksums;
pub mod discovery;
pub mod download_url;
pub mod fetch;
pub mod file_server;
pub mod forges;
pub mod guard;
pub mod https;
pub mod pages;
pub mod release;
pub(crate) mod source;
pub mod url;
