//! Listeners to events.

mod listener;
