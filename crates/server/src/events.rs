//! Listeners to events: how many there are, how they wake, and how much work they cause.
//!
//! Each listener reads the log from its own position (`listener`). After each look it rests, longer if there are more
//! listeners, so that the number of looks per second is bounded. Then it sends all that happened meanwhile. A change
//! never waits for listeners, not even to wake them.

pub mod journal;
mod listener;
pub mod webhooks;

pub use crate::events::listener::{Audience, EventSource, HEARTBEAT, ListenRequest, Listener, not_kept};
