//! The tests of what other tests stand on.

#![allow(clippy::unwrap_used, reason = "a test")]

mod layout;
mod linearizable;
mod postgres;
mod proxy;
mod proxy_postgres;
