//! The parts of a webhook.

mod backoff;
mod names;
mod progress;
mod secret;
