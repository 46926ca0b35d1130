//! Webhooks.

mod failing;
mod sent;
