//! What the server fetches from forges and file servers.

mod failures;
mod outgoing;
mod releases;
mod sharing;
mod signers;
mod tokens;
