//! Those who listen to what happens: how many there are, how they are woken, and how much work they may be.
//!
//! A listener looks at the log by itself, from where it was (`listener`). After each look it rests, the longer the more
//! listeners there are, so that all of them together look a bounded number of times a second: what happened meanwhile
//! is told at once afterwards. A change never waits for listeners, not even to wake them.

mod audience;
mod listener;
mod request;
#[cfg(test)]
pub(crate) mod tests;

pub use self::audience::Audience;
pub(crate) use self::{
    listener::{EventSource, Listener},
    request::{ListenRequest, not_kept},
};
