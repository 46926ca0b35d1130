//! Drives the program `countersign` as its users do: a process, a socket, a Git repository, a file server.
//! What is expected comes from the specification and the numbered decisions (D1–D40), not from the code.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

mod admin_drop;
mod assets;
mod audit_trail;
mod authentication;
mod authentication_headers;
mod chain;
mod checksums;
mod concurrency;
mod configuration;
mod damage;
mod data_directory;
mod files;
mod forge_failures;
mod forge_releases;
mod forge_sharing;
mod forge_signers;
mod forge_tokens;
mod hostile_names;
mod hostile_texts;
mod http_errors;
mod many_signers;
mod outgoing;
mod path_attacks;
mod ping;
mod registration;
mod request_bodies;
mod restarts;
mod revocation;
mod rotation;
mod shutdown;
mod signatures;
mod signers_files;
mod status;
mod updates;
