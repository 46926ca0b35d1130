//! Webhooks.

mod failing;
mod sent;
mod settings;
