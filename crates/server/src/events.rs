//! Listeners to events: how many there are, how they wake, and how much work they cause.
//!
//! Each listener reads the log from its own position (`listener`). After each look it rests, longer if there are more
//! listeners, so that the number of looks per second is bounded. Then it sends all that happened meanwhile. A change
//! never waits for listeners, not even to wake them.

mod audience;
mod listener;
mod request;

pub use self::{
    audience::Audience,
    listener::{EventSource, HEARTBEAT, Listener},
    request::{ListenRequest, not_kept},
};
