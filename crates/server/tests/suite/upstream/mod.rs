//! What the server fetches.

mod releases;
mod turns;
