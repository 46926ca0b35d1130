//! The parts of a webhook.

mod names;
mod progress;
mod secret;
